#include "events/event_segment.hpp"

#include <doctest/doctest.h>

#include <string>

#include "evictd.pb.h"
#include "os/checksum.hpp"

namespace evictd::events::event_segment_test {
namespace {

v1::Event event(std::uint64_t sequence, const std::string& message = "something happened") {
  v1::Event result;
  result.set_sequence(sequence);
  result.set_kind(v1::Event::RECOVERED);
  result.set_message(message);
  return result;
}

using Numbers = std::vector<std::uint64_t>;

/// A segment with these numbers; `ends` gets where each record is over.
std::string segment(const std::vector<std::uint64_t>& numbers, std::vector<std::size_t>* ends = nullptr) {
  std::string bytes(segment_header);
  for (const auto number : numbers) {
    REQUIRE(append_record(bytes, event(number)));
    if (ends != nullptr) ends->push_back(bytes.size());
  }
  return bytes;
}

std::vector<std::uint64_t> numbers_in(const SegmentContent& content) {
  std::vector<std::uint64_t> numbers;
  for (const auto& each : content.events) numbers.push_back(each->sequence());
  return numbers;
}

TEST_CASE("the checksum is CRC-32C") {
  CHECK(os::checksum("123456789") == 0xE3069283);
  CHECK(os::checksum("1234", "56789") == 0xE3069283);
  // RFC 3720, B.4, whole and in parts of any length.
  const std::string zeros(32, '\0');
  const std::string ones(32, '\xff');
  for (std::size_t part = 0; part <= 32; ++part) {
    CHECK(os::checksum(zeros.substr(0, part), zeros.substr(part)) == 0x8A9136AA);
    CHECK(os::checksum(ones.substr(0, part), ones.substr(part)) == 0x62A8AB43);
  }
}

TEST_CASE("names of segments sort as their numbers do, and are read back") {
  CHECK(segment_name(17) == "events-00000000000000000017");
  CHECK(segment_name(9) < segment_name(10));
  CHECK(parse_segment_name(segment_name(18'446'744'073'709'551'615ULL)) == 18'446'744'073'709'551'615ULL);
  for (const char* other : {"events-17", "events-0000000000000000001x", "events-00000000000000000017.aside", "lock",
                            "events-99999999999999999999", ""})
    CHECK_FALSE(parse_segment_name(other));
}

TEST_CASE("what was written is read, byte for byte") {
  std::string bytes(segment_header);
  auto odd = event(3, std::string("\0\xc3\xa4\n", 4));
  (*odd.mutable_stages())["decided"] = -1;
  REQUIRE(append_record(bytes, odd));
  REQUIRE(append_record(bytes, event(4)));
  const auto content = parse_segment(bytes, 2);
  CHECK(content.damage.empty());
  CHECK(content.good_bytes == bytes.size());
  REQUIRE(content.events.size() == 2);
  CHECK(content.events[0]->SerializeAsString() == odd.SerializeAsString());
}

TEST_CASE("an event that protobuf does not take back is left out, and those after it are read") {
  std::string bytes(segment_header);
  for (const auto& each : {event(1), event(2, "\xff is not UTF-8"), event(3)}) REQUIRE(append_record(bytes, each));
  const auto content = parse_segment(bytes);
  CHECK(numbers_in(content) == Numbers{1, 3});
  CHECK(content.good_bytes == bytes.size());
  CHECK(content.damage.empty());
}

TEST_CASE("a segment that is torn at any byte has the events that were whole") {
  std::vector<std::size_t> ends;
  const auto bytes = segment({1, 2, 5}, &ends);
  for (std::size_t size = segment_header.size(); size <= bytes.size(); ++size) {
    const auto content = parse_segment(std::string_view(bytes).substr(0, size));
    Numbers whole;
    std::size_t good = segment_header.size();
    for (std::size_t i = 0; i < ends.size(); ++i)
      if (ends[i] <= size) whole.push_back(Numbers{1, 2, 5}[i]), good = ends[i];
    CHECK(numbers_in(content) == whole);
    CHECK(content.good_bytes == good);
    CHECK(content.damage.empty() == (good == size));
  }
}

TEST_CASE("one wrong byte anywhere in a record ends the segment before it") {
  std::vector<std::size_t> ends;
  const auto bytes = segment({1, 2, 3}, &ends);
  for (std::size_t place = ends[0]; place < ends[1]; ++place) {
    for (const unsigned mask : {0x01U, 0x80U, 0xffU}) {
      auto wrong = bytes;
      wrong[place] = static_cast<char>(static_cast<unsigned char>(wrong[place]) ^ mask);
      const auto content = parse_segment(wrong);
      CHECK(numbers_in(content) == Numbers{1});
      CHECK(content.good_bytes == ends[0]);
      CHECK_FALSE(content.damage.empty());
    }
  }
}

TEST_CASE("zeros, as a power failure leaves them, are no events") {
  const auto content = parse_segment(segment({1}) + std::string(5000, '\0'));
  CHECK(numbers_in(content) == Numbers{1});
  CHECK(content.damage == "its last 5000 bytes are no events");
}

TEST_CASE("numbers that do not rise are damage") {
  CHECK(numbers_in(parse_segment(segment({4, 4}))) == Numbers{4});
  CHECK(numbers_in(parse_segment(segment({4, 3}))) == Numbers{4});
  CHECK(numbers_in(parse_segment(segment({4, 5}), 4)).empty());
  CHECK(numbers_in(parse_segment(segment({4, 5}), 3)) == Numbers{4, 5});
}

TEST_CASE("another file, and a segment of a newer evictd, are told apart") {
  for (const auto& [bytes, damage] :
       std::vector<std::pair<std::string, std::string>>{{"", "it holds no events"},
                                                        {"hello", "it holds no events"},
                                                        {"evictd events 2\n....", "it was written by a newer evictd"},
                                                        {"evictd events 17\n", "it was written by a newer evictd"}}) {
    const auto content = parse_segment(bytes);
    CHECK(content.good_bytes == 0);
    CHECK(content.damage == damage);
  }
}

TEST_CASE("an event that no client could take is not written") {
  std::string bytes;
  CHECK_FALSE(append_record(bytes, event(1, std::string(largest_record, 'x'))));
  CHECK(bytes.empty());
}

}  // namespace
}  // namespace evictd::events::event_segment_test
