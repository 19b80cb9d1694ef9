#include "os/saved_slots.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <string>

#include "fixture/tree.hpp"
#include "os/file_descriptor.hpp"

namespace evictd::os::saved_slots_test {
namespace {

constexpr SavedSlots::Place place{.offset = 4096, .slot_size = 8192};

/// A file of zeros with room for both slots.
struct File {
  File() {
    std::ofstream(path, std::ios::binary) << std::string(place.offset + 2 * place.slot_size, '\0');
    descriptor = FileDescriptor{::open(path.c_str(), O_RDWR | O_CLOEXEC)};
  }

  /// What a process that starts now finds.
  [[nodiscard]] std::optional<std::string> found() const { return SavedSlots{place}.read(descriptor.get()); }
  [[nodiscard]] std::string bytes() const {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void replace(const std::string& bytes) const {
    REQUIRE(::pwrite(descriptor.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  }

  fixture::Tree tree;
  std::string path = tree.path("slots").native();
  FileDescriptor descriptor;
};

}  // namespace

TEST_CASE("the content that was stored last is found, by one process after the other") {
  const File file;
  CHECK_FALSE(file.found());
  CHECK(SavedSlots{place}.are_untouched(file.descriptor.get()));
  for (const std::string content : {"a", "", "another one, and longer", "b"}) {
    SavedSlots slots{place};
    static_cast<void>(slots.read(file.descriptor.get()));
    REQUIRE(slots.store(file.descriptor.get(), content));
    CHECK(file.found() == content);
    CHECK_FALSE(slots.are_untouched(file.descriptor.get()));
  }
}

TEST_CASE("wherever a write is torn, and whatever bit of it is wrong, the content before it is found") {
  const File file;
  SavedSlots slots{place};
  REQUIRE(slots.store(file.descriptor.get(), "the first"));
  REQUIRE(slots.store(file.descriptor.get(), "the second"));
  const auto before = file.bytes();
  REQUIRE(slots.store(file.descriptor.get(), "the third"));
  const auto after = file.bytes();
  const auto begin = slots.offset_of(slots.generation());
  const auto size = SavedSlots::head_size + 9;
  for (std::size_t torn = 0; torn < size; ++torn) {
    CAPTURE(torn);
    auto bytes = before;
    bytes.replace(begin, torn, after, begin, torn);
    file.replace(bytes);
    // The third differs from the first, in whose place it is, up to its last letter.
    CHECK(file.found() == "the second");
  }
  for (std::size_t bit = 0; bit < 8 * size; ++bit) {
    CAPTURE(bit);
    auto bytes = after;
    bytes[begin + bit / 8] = static_cast<char>(bytes[begin + bit / 8] ^ (1 << bit % 8));
    file.replace(bytes);
    CHECK(file.found() == "the second");
  }
  file.replace(after);
  CHECK(file.found() == "the third");
}

TEST_CASE("what is too long, or cannot be written, is refused, and what was stored before holds") {
  const File file;
  SavedSlots slots{place};
  CHECK(slots.largest() == place.slot_size - SavedSlots::head_size);
  REQUIRE(slots.store(file.descriptor.get(), std::string(slots.largest(), 'x')));
  CHECK_FALSE(slots.store(file.descriptor.get(), std::string(slots.largest() + 1, 'y')));
  CHECK(errno == EMSGSIZE);
  const FileDescriptor read_only{::open(file.path.c_str(), O_RDONLY | O_CLOEXEC)};
  CHECK_FALSE(slots.store(read_only.get(), "z"));
  CHECK(errno == EBADF);
  CHECK(file.found() == std::string(slots.largest(), 'x'));
}

}  // namespace evictd::os::saved_slots_test
