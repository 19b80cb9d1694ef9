#include "events/segment_reader.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "events/event_segment.hpp"
#include "events/segment_writer.hpp"
#include "events/stored_events.hpp"
#include "fixture/tree.hpp"

namespace evictd::events::segment_reader_test {
namespace {

namespace fs = std::filesystem;
using test::files_in;
using test::numbered_from;
using test::numbers_of;

using Numbers = std::vector<std::uint64_t>;

/// Segments with these events, one for each writer.
void write(const fixture::Tree& tree, std::uint64_t first, std::uint64_t last) {
  std::string error;
  CHECK(SegmentWriter(tree.path(), 1'000'000, {}).write(numbered_from(first, last), error) == 0);
}

}  // namespace

TEST_CASE("an empty or missing directory holds no events") {
  const fixture::Tree tree;
  CHECK(load_segments(tree.path(), 100).events.empty());
  const auto missing = load_segments(tree.path("missing"), 100);
  CHECK(missing.events.empty());
  CHECK(missing.complaints.empty());
}

TEST_CASE("segments are read in the order of their numbers; other files are left alone") {
  const fixture::Tree tree{{fixture::file("lock", "")}};
  write(tree, 11, 12);
  write(tree, 1, 3);
  const auto loaded = load_segments(tree.path(), 100);
  CHECK(numbers_of(loaded.events) == Numbers{1, 2, 3, 11, 12});
  REQUIRE(loaded.segments.size() == 2);
  CHECK(loaded.segments.front().path == tree.path(segment_name(1)));
  CHECK(loaded.segments.front().events == 3);
  CHECK(loaded.segments.front().bytes == fs::file_size(tree.path(segment_name(1))));
  CHECK(loaded.complaints.empty());
  CHECK(fs::exists(tree.path("lock")));
}

TEST_CASE("segments before those that hold enough are deleted") {
  const fixture::Tree tree;
  write(tree, 1, 5);
  write(tree, 6, 10);
  write(tree, 11, 15);
  CHECK(numbers_of(load_segments(tree.path(), 6).events).front() == 6);
  CHECK_FALSE(fs::exists(tree.path(segment_name(1))));
  CHECK(files_in(tree.path()) == 2);
}

TEST_CASE("a segment that ends in half an event is cut there, and says so once") {
  const fixture::Tree tree;
  write(tree, 1, 3);
  const auto segment = tree.path(segment_name(1));
  const auto whole = fs::file_size(segment);
  std::ofstream(segment, std::ios::app) << "half";
  const auto loaded = load_segments(tree.path(), 100);
  CHECK(numbers_of(loaded.events) == Numbers{1, 2, 3});
  REQUIRE(loaded.complaints.size() == 1);
  CHECK(loaded.complaints.front().starts_with(segment.native() + ": "));
  CHECK(fs::file_size(segment) == whole);
  CHECK(load_segments(tree.path(), 100).complaints.empty());
}

TEST_CASE("a file that is no segment, or a directory, is set aside") {
  const fixture::Tree tree{{fixture::file(segment_name(1), "something else"), fixture::dir(segment_name(2))}};
  write(tree, 3, 3);
  const auto loaded = load_segments(tree.path(), 100);
  CHECK(numbers_of(loaded.events) == Numbers{3});
  CHECK(loaded.complaints.size() == 2);
  CHECK(fs::exists(tree.path(segment_name(1) + ".aside")));
  CHECK(fs::exists(tree.path(segment_name(2) + ".aside")));
}

TEST_CASE("a segment whose numbers run into the next one's is set aside") {
  const fixture::Tree tree;
  write(tree, 1, 5);
  write(tree, 4, 6);
  const auto loaded = load_segments(tree.path(), 100);
  CHECK(numbers_of(loaded.events) == Numbers{4, 5, 6});
  REQUIRE(loaded.complaints.size() == 1);
  CHECK(loaded.complaints.front().find("its events are not in their order") != std::string::npos);
}

TEST_CASE("a segment of a header alone is removed without a word") {
  const fixture::Tree tree{fixture::file(segment_name(1), std::string(segment_header))};
  CHECK(load_segments(tree.path(), 100).complaints.empty());
  CHECK(files_in(tree.path()) == 0);
}

}  // namespace evictd::events::segment_reader_test
