#include "events/segment_writer.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "events/event_segment.hpp"
#include "events/stored_events.hpp"
#include "fixture/tree.hpp"
#include "os/file_descriptor.hpp"

namespace evictd::events::segment_writer_test {
namespace {

namespace fs = std::filesystem;
using test::files_in;
using test::numbered;
using test::numbered_from;
using test::numbers_of;

std::vector<std::uint64_t> numbers_in(const fs::path& segment) {
  std::ifstream file(segment, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const auto content = parse_segment(bytes);
  CHECK(content.damage.empty());
  return numbers_of(content.events);
}

}  // namespace

TEST_CASE("events are in a segment with the name of the first, and dirty until they are synced") {
  const fixture::Tree tree;
  SegmentWriter writer{tree.path(), 1000, {}};
  std::string error;
  CHECK_FALSE(writer.is_dirty());
  CHECK(writer.write(numbered_from(17, 19), error) == 0);
  CHECK(writer.write(numbered_from(20, 20), error) == 0);
  CHECK(error.empty());
  CHECK(writer.is_dirty());
  CHECK(writer.sync(error) == 0);
  CHECK_FALSE(writer.is_dirty());
  CHECK(numbers_in(tree.path(segment_name(17))) == std::vector<std::uint64_t>{17, 18, 19, 20});
  CHECK(files_in(tree.path()) == 1);
}

TEST_CASE("segments hold a quarter of the history each, and the oldest goes once the others hold enough") {
  const fixture::Tree tree;
  constexpr std::size_t keep = 400;
  SegmentWriter writer{tree.path(), keep, {}};
  std::string error;
  CHECK(writer.write(numbered_from(1, 400), error) == 0);
  CHECK(files_in(tree.path()) == 4);
  CHECK(fs::exists(tree.path(segment_name(301))));
  CHECK(writer.write(numbered_from(401, 500), error) == 0);
  CHECK_FALSE(fs::exists(tree.path(segment_name(1))));
  CHECK(numbers_in(tree.path(segment_name(101))).back() == 200);
  CHECK(numbers_in(tree.path(segment_name(401))).back() == 500);
}

TEST_CASE("an earlier segment is not appended to, and counts as history") {
  const fixture::Tree tree;
  std::string error;
  {
    SegmentWriter earlier{tree.path(), 64, {}};
    CHECK(earlier.write(numbered_from(1, 10), error) == 0);
  }
  SegmentWriter writer{tree.path(), 64, {{.path = tree.path(segment_name(1)), .events = 10, .bytes = 100}}};
  CHECK(writer.write(numbered_from(11, 11), error) == 0);
  CHECK(files_in(tree.path()) == 2);
  CHECK(writer.write(numbered_from(12, 74), error) == 0);
  CHECK_FALSE(fs::exists(tree.path(segment_name(1))));
}

TEST_CASE("an event that no client could take is lost, and those around it are not") {
  const fixture::Tree tree;
  SegmentWriter writer{tree.path(), 1000, {}};
  std::string error;
  const std::vector<EventPtr> events{numbered(1), numbered(2, std::string(largest_record, 'x')), numbered(3)};
  CHECK(writer.write(events, error) == 1);
  CHECK(numbers_in(tree.path(segment_name(1))) == std::vector<std::uint64_t>{1, 3});
}

TEST_CASE("what the disk may have lost counts as lost: no older segment goes for it, and another one is begun") {
  const fixture::Tree tree;
  constexpr std::size_t keep = 400;
  SegmentWriter writer{tree.path(), keep, {}};
  std::string error;
  CHECK(writer.write(numbered_from(1, 400), error) == 0);
  // A pipe takes what is written, and cannot be synced.
  const auto failing = tree.path(segment_name(401));
  REQUIRE(::mkfifo(failing.c_str(), 0600) == 0);
  const os::FileDescriptor reader{::open(failing.c_str(), O_RDWR | O_CLOEXEC)};
  CHECK(writer.write(numbered_from(401, 500), error) == 100);
  CHECK(error == failing.native() + ": Invalid argument");
  CHECK(fs::exists(tree.path(segment_name(1))));

  error.clear();
  CHECK(writer.write(numbered_from(501, 599), error) == 0);
  CHECK(fs::exists(tree.path(segment_name(1))));
  CHECK(writer.write(numbered_from(600, 600), error) == 0);
  CHECK(error.empty());
  CHECK(numbers_in(tree.path(segment_name(501))).back() == 600);
  CHECK_FALSE(fs::exists(tree.path(segment_name(1))));
  CHECK(fs::exists(tree.path(segment_name(101))));
}

TEST_CASE("where no segment can be begun every event is lost, and the error names the file") {
  const fixture::Tree tree;
  SegmentWriter writer{tree.path("missing"), 1000, {}};
  std::string error;
  CHECK(writer.write(numbered_from(1, 3), error) == 3);
  CHECK(error == (tree.path("missing") / segment_name(1)).native() + ": No such file or directory");
  fs::create_directory(tree.path("missing"));
  CHECK(writer.write(numbered_from(4, 4), error) == 0);
  CHECK(numbers_in(tree.path("missing") / segment_name(4)) == std::vector<std::uint64_t>{4});
}

}  // namespace evictd::events::segment_writer_test
