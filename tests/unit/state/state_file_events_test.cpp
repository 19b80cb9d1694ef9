#include "state/state_file.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "fixture/random.hpp"
#include "fixture/tree.hpp"
#include "os/file_descriptor.hpp"

namespace evictd::state::state_file_events_test {
namespace {

using fixture::Random;

constexpr std::size_t offset = 4096;
constexpr std::size_t trailer = 8;

/// A state file's room for marks and events, and one evictd after the other that uses it.
struct Room {
  Room() : descriptor{::open(tree.path("state").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)} {}

  [[nodiscard]] SavedEvents saved() const { return SavedEvents{descriptor.get(), offset}; }
  /// What an evictd that starts now finds.
  [[nodiscard]] std::vector<std::string> found() const {
    const auto events = saved();
    const auto mark = events.read_mark();
    return mark ? events.read(*mark) : std::vector<std::string>{};
  }

  fixture::Tree tree;
  os::FileDescriptor descriptor;
};

void save(SavedEvents& saved, const std::vector<std::string>& events, std::uint64_t last = 0) {
  for (const auto& event : events) saved.add(event);
  REQUIRE(saved.write());
  REQUIRE(saved.save(saved.next_mark(last, 65'536)));
}

using Found = std::vector<std::string>;

}  // namespace

TEST_CASE("what was saved is found, with the numbers, and the next evictd goes on after it") {
  const Room room;
  CHECK_FALSE(room.saved().read_mark().has_value());
  auto first = room.saved();
  save(first, {"one", "", "three"}, 3);
  CHECK(room.found() == Found{"one", "", "three"});
  const auto mark = *room.saved().read_mark();
  CHECK(mark.last == 3);
  CHECK(mark.reserved == 65'536);

  auto second = room.saved();
  second.resume_after(mark);
  save(second, {"four"}, 4);
  CHECK(room.found() == Found{"one", "", "three", "four"});
}

TEST_CASE("what has no mark after it does not count") {
  const Room room;
  auto saved = room.saved();
  save(saved, {"one"});
  saved.add("two");
  REQUIRE(saved.write());
  CHECK(room.found() == Found{"one"});
  // The next evictd writes over it.
  auto next = room.saved();
  next.resume_after(*next.read_mark());
  save(next, {"another two"});
  CHECK(room.found() == Found{"one", "another two"});
}

TEST_CASE("an event that is too large is left out") {
  const Room room;
  auto saved = room.saved();
  save(saved, {"one", std::string(SavedEvents::largest + 1, 'x'), std::string(SavedEvents::largest, 'y')});
  CHECK(room.found() == Found{"one", std::string(SavedEvents::largest, 'y')});
}

TEST_CASE("property: of whatever was saved the newest is found, as much as there is room for") {
  for (const auto seed : fixture::seeds(30)) {
    CAPTURE(seed);
    Random random{seed};
    const Room room;
    auto saved = room.saved();
    Found all;
    for (int round = 0; round < 40; ++round) {
      std::vector<std::string> events;
      for (auto count = random.between(0, 30); count > 0; --count)
        events.emplace_back(static_cast<std::size_t>(random.between(0, random.chance(5) ? 60'000 : 3000)),
                            static_cast<char>('a' + round % 26));
      save(saved, events);
      all.insert(all.end(), events.begin(), events.end());
      if (random.chance(30)) {  // something that does not count, over the oldest
        auto killed = saved;
        killed.add(std::string(static_cast<std::size_t>(random.between(0, 60'000)), '!'));
        REQUIRE(killed.write());
      }
      const auto found = room.found();
      REQUIRE(found.size() <= all.size());
      CHECK(std::equal(found.rbegin(), found.rend(), all.rbegin()));
      std::size_t bytes = 0;
      for (const auto& event : found) bytes += event.size() + trailer;
      const bool is_all = found.size() == all.size();
      CHECK((is_all || bytes >= SavedEvents::ring_size - 3 * SavedEvents::largest));
    }
  }
}

TEST_CASE("any wrong bit in an event hides it and those before it, and no other") {
  const Room room;
  auto saved = room.saved();
  save(saved, {"first", "second", "third"});
  const auto begin = static_cast<off_t>(offset + 5 + trailer);
  for (off_t place = begin; place < begin + static_cast<off_t>(6 + trailer); ++place) {
    CAPTURE(place);
    char byte = 0;
    REQUIRE(::pread(room.descriptor.get(), &byte, 1, place) == 1);
    const auto wrong = static_cast<char>(byte ^ 4);
    REQUIRE(::pwrite(room.descriptor.get(), &wrong, 1, place) == 1);
    CHECK(room.found() == Found{"third"});
    REQUIRE(::pwrite(room.descriptor.get(), &byte, 1, place) == 1);
  }
  CHECK(room.found().size() == 3);
}

TEST_CASE("a mark that is torn at any byte leaves the one before it") {
  const Room room;
  auto saved = room.saved();
  save(saved, {"one"});
  save(saved, {"two"});
  const auto second = *room.saved().read_mark();
  const auto place = static_cast<off_t>(SavedEvents::marks_offset + second.generation % 2 * 1024);
  std::array<char, 36> bytes{};
  REQUIRE(::pread(room.descriptor.get(), bytes.data(), bytes.size(), place) == 36);
  const std::string zeros(36, '\0');
  for (std::size_t torn = 0; torn < 36; ++torn) {
    CAPTURE(torn);
    REQUIRE(::pwrite(room.descriptor.get(), zeros.data(), 36, place) == 36);
    REQUIRE(::pwrite(room.descriptor.get(), bytes.data(), torn, place) == static_cast<ssize_t>(torn));
    CHECK(room.found() == Found{"one"});
  }
}

}  // namespace evictd::state::state_file_events_test
