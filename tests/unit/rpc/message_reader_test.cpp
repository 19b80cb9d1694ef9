#include "rpc/message_reader.hpp"

#include <doctest/doctest.h>

#include <deque>
#include <string>
#include <vector>

namespace evictd::rpc::message_reader_test {

TEST_CASE("a message is framed by a byte and its length") {
  CHECK(framed("") == std::string(5, '\0'));
  CHECK(framed("abc") == std::string("\0\0\0\0\3abc", 8));
  CHECK(framed(std::string(0x010203, 'x')).substr(0, 5) == std::string("\0\0\1\2\3", 5));
}

TEST_CASE("messages are the same wherever what brings them is cut") {
  const std::vector<std::string> sent{"first", "", std::string(300, 'x'), "last"};
  std::string bytes;
  for (const auto& message : sent) bytes += framed(message);
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    MessageReader reader{300};
    for (std::size_t at = 0; at < bytes.size(); at += piece)
      REQUIRE(reader.add(std::string_view(bytes).substr(at, piece)));
    CHECK(reader.messages == std::deque<std::string>(sent.begin(), sent.end()));
    CHECK(reader.is_between_messages());
  }
}

TEST_CASE("a message that is begun is none") {
  MessageReader reader{100};
  CHECK(reader.is_between_messages());
  REQUIRE(reader.add(framed("abc").substr(0, 3)));
  CHECK_FALSE(reader.is_between_messages());
  REQUIRE(reader.add(framed("abc").substr(3, 4)));
  CHECK(reader.messages.empty());
  CHECK_FALSE(reader.is_between_messages());
}

TEST_CASE("what is too large, or compressed, is refused by its first bytes") {
  MessageReader reader{3};
  CHECK(reader.add(framed("abc")));
  const auto large = reader.add(framed("abcd").substr(0, 5));
  REQUIRE_FALSE(large);
  CHECK(large.error().message == "a message of 4 bytes, where 3 are taken at most");
  MessageReader other{3};
  const auto compressed = other.add(std::string("\1\0\0\0\1a", 6));
  REQUIRE_FALSE(compressed);
  CHECK(compressed.error().message == "the server sends a compressed message, which was not asked for");
}

}  // namespace evictd::rpc::message_reader_test
