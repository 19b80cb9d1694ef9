#include "state/state_file.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "fixture/mount.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"
#include "support/skip.hpp"

namespace evictd::state::state_file_test {
namespace {

using fixture::error_of;
using fixture::value_of;

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void replace_content(const std::filesystem::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

/// A file in which the contents were stored one after the other.
std::filesystem::path stored(const fixture::Tree& tree, std::initializer_list<std::string> contents) {
  const auto path = tree.path("run/state");
  auto file = value_of(StateFile::open(path)).file;
  for (const auto& content : contents) REQUIRE(file.store(content));
  return path;
}

/// The file as it is after `change` was done to its bytes.
template <class Change>
StateFile::Found after(const fixture::Tree& tree, std::initializer_list<std::string> contents, Change change) {
  const auto path = stored(tree, contents);
  auto bytes = content_of(path);
  change(bytes);
  replace_content(path, bytes);
  return value_of(StateFile::open(path));
}

void save_event(StateFile& file, const std::string& event) {
  file.events().add(event);
  REQUIRE(file.events().write());
  REQUIRE(file.events().save(file.events().next_mark(1, 1)));
}

std::vector<std::string> events_of(StateFile& file) {
  const auto mark = file.events().read_mark();
  return mark ? file.events().read(*mark) : std::vector<std::string>{};
}

constexpr std::size_t first_slot = 4096;
constexpr std::size_t second_slot = first_slot + StateFile::slot_size;

}  // namespace

TEST_CASE("what was stored last is found, whatever was before it") {
  const fixture::Tree tree;
  const auto path = stored(tree, {});
  CHECK(value_of(StateFile::open(path)).content == "");
  for (const std::string content : {"a", "", "another one, and longer"}) {
    REQUIRE(value_of(StateFile::open(path)).file.store(content));
    const auto found = value_of(StateFile::open(path));
    CHECK(found.content == content);
    CHECK(found.remark == "");
  }
}

TEST_CASE("a write that is torn at any byte leaves the one before it") {
  const fixture::Tree tree;
  const auto path = stored(tree, {"the first", "the second one"});
  const auto before = content_of(path);
  REQUIRE(value_of(StateFile::open(path)).file.store("the third and longest"));
  const auto whole = content_of(path);
  // The third is in the second slot, as the first was.
  constexpr std::size_t written = 16 + 21;
  for (std::size_t torn = 0; torn < written; ++torn) {
    CAPTURE(torn);
    auto bytes = before;
    bytes.replace(second_slot, torn, whole, second_slot, torn);
    replace_content(path, bytes);
    const auto found = value_of(StateFile::open(path));
    CHECK(found.content == "the second one");
    CHECK(found.remark == "");
  }
}

TEST_CASE("any wrong bit in what was stored last leaves the one before it") {
  const fixture::Tree tree;
  const auto path = stored(tree, {"the first", "the second"});
  const auto whole = content_of(path);
  for (std::size_t bit = 0; bit < 8 * (16 + 10); ++bit) {
    CAPTURE(bit);
    auto bytes = whole;
    bytes[first_slot + bit / 8] = static_cast<char>(bytes[first_slot + bit / 8] ^ (1 << bit % 8));
    replace_content(path, bytes);
    CHECK(value_of(StateFile::open(path)).content == "the first");
  }
}

TEST_CASE("a file that cannot be used is set aside with a word, and a new one is used") {
  const fixture::Tree tree;
  const auto path = tree.path("run/state").native();
  const auto check = [&](const StateFile::Found& found, const std::string& why) {
    CHECK(found.content == "");
    CHECK(found.remark == path + ": " + why + "; it is " + path + ".aside now");
    CHECK(std::filesystem::exists(path + ".aside"));
    CHECK(value_of(StateFile::open(path)).remark == "");
  };
  check(after(tree, {"x"}, [](std::string& bytes) { bytes = "a file of somebody else's\n"; }),
        "it is no state of evictd's");
  check(after(tree, {"x"}, [](std::string& bytes) { bytes[8] = 2; }), "it is of version 2, and version 1 is known");
  check(after(tree, {"x"}, [](std::string& bytes) { bytes[40] ^= 1; }), "it is damaged");
  check(after(tree, {"x", "y"},
              [](std::string& bytes) {
                bytes[first_slot + 16] ^= 1;
                bytes[second_slot + 16] ^= 1;
              }),
        "it is damaged");
  check(after(tree, {"x"}, [](std::string& bytes) { bytes.resize(second_slot); }), "it is damaged");
}

TEST_CASE("what another boot has left is of no use to anybody") {
  const fixture::Tree tree{{fixture::file("boot", "11111111-2222-3333-4444-555555555555\n")}};
  const auto path = stored(tree, {"of this boot"});
  const auto found = value_of(StateFile::open(path, {}, tree.path("boot")));
  CHECK(found.content == "");
  CHECK(found.remark == "");
  CHECK_FALSE(std::filesystem::exists(path.native() + ".aside"));
}

TEST_CASE("a descriptor that was left with systemd is read where the directory has gone") {
  const fixture::Tree tree;
  const auto path = stored(tree, {"kept"});
  os::FileDescriptor left{::open(path.c_str(), O_RDWR | O_CLOEXEC)};
  std::filesystem::remove_all(path.parent_path());
  CHECK(value_of(StateFile::open(path, std::move(left))).content == "kept");
  CHECK(value_of(StateFile::open(path)).content == "kept");  // from now on it is in the new file, too
}

TEST_CASE("events are found beside the rest, also by a descriptor that was left with systemd") {
  const fixture::Tree tree;
  const auto path = stored(tree, {"kept"});
  {
    auto file = value_of(StateFile::open(path)).file;
    save_event(file, "an event");
    auto next = value_of(StateFile::open(path)).file;
    CHECK(events_of(next) == std::vector<std::string>{"an event"});
  }
  os::FileDescriptor left{::open(path.c_str(), O_RDWR | O_CLOEXEC)};
  std::filesystem::remove_all(path.parent_path());
  auto found = value_of(StateFile::open(path, std::move(left)));
  CHECK(events_of(found.file) == std::vector<std::string>{"an event"});
  REQUIRE(found.file.store("newer"));
  CHECK(value_of(StateFile::open(path)).content == "newer");
}

TEST_CASE("a file of before there were events in it is used, and gets room for them") {
  const fixture::Tree tree;
  auto found = after(tree, {"kept"}, [](std::string& bytes) { bytes.resize(first_slot + 2 * StateFile::slot_size); });
  CHECK(found.content == "kept");
  CHECK(found.remark == "");
  CHECK(events_of(found.file).empty());
  save_event(found.file, "an event");
  CHECK(value_of(StateFile::open(tree.path("run/state"))).content == "kept");
}

TEST_CASE("a file that could not be made longer for all events is used, with those that are there") {
  const fixture::Tree tree;
  const auto path = stored(tree, {"kept"});
  {
    auto file = value_of(StateFile::open(path)).file;
    save_event(file, "an event");
  }
  constexpr auto ring = first_slot + 2 * StateFile::slot_size;
  for (const auto there : {std::size_t{1500}, std::size_t{3}}) {
    CAPTURE(there);
    std::filesystem::resize_file(path, ring + there);
    auto found = value_of(StateFile::open(path));
    CHECK(found.content == "kept");
    CHECK(found.remark == "");
    CHECK(events_of(found.file).size() == (there == 1500 ? 1 : 0));
  }
}

TEST_CASE("what is too long is refused, and what was stored before holds") {
  const fixture::Tree tree;
  const auto path = stored(tree, {"kept"});
  auto file = value_of(StateFile::open(path)).file;
  CHECK(error_of(file.store(std::string(StateFile::slot_size, 'x'))).find("are more than it holds") !=
        std::string::npos);
  CHECK(value_of(StateFile::open(path)).content == "kept");
}

TEST_CASE("a full file system is told at the start, and takes nothing away later") {
  SKIP_IF(fixture::Mount::impossible());
  const fixture::Tree tree{fixture::dir("small")};
  const auto path = tree.path("small/state");
  {
    const auto mount = fixture::Mount::tmpfs(tree.path("small"), "size=256k");
    CHECK(error_of(StateFile::open(path)) == path.native() + ": cannot be made: No space left on device");
  }
  const auto mount = fixture::Mount::tmpfs(tree.path("small"), "size=2m");
  auto file = value_of(StateFile::open(path)).file;
  replace_content(tree.path("small/rest"), std::string(4 << 20, 'x'));
  for (int i = 0; i < 3; ++i) REQUIRE(file.store(std::string(StateFile::slot_size - 16, static_cast<char>('a' + i))));
  CHECK(value_of(StateFile::open(path)).content == std::string(StateFile::slot_size - 16, 'c'));
}

TEST_CASE("a link is not followed, and a directory that cannot be made is an error") {
  const fixture::Tree tree{{fixture::file("file", "x")}};
  std::filesystem::create_symlink(tree.path("file"), tree.path("link"));
  CHECK(error_of(StateFile::open(tree.path("link"))).find("cannot be opened") != std::string::npos);
  CHECK(content_of(tree.path("file")) == "x");
  CHECK(error_of(StateFile::open(tree.path("file/state"))).find("cannot be opened") != std::string::npos);
}

}  // namespace evictd::state::state_file_test
