#include "os/numbers.hpp"

#include <doctest/doctest.h>

namespace evictd::os::numbers_test {

TEST_CASE("a counter is one number and nothing else") {
  CHECK(parse_number("123\n") == 123);
  CHECK(parse_number("0") == 0);
  CHECK(parse_number("9223372036854775807\n") == INT64_MAX);
  CHECK_FALSE(parse_number("9223372036854775808\n"));
  CHECK_FALSE(parse_number("-1\n"));
  CHECK_FALSE(parse_number("12x\n"));
  CHECK_FALSE(parse_number("1\n2\n"));
  CHECK_FALSE(parse_number("\n"));
  CHECK_FALSE(parse_number(""));
}

TEST_CASE("a line of a table is found by its whole key at its beginning") {
  constexpr std::string_view table =
      "inactive_file_x 1\nx inactive_file 2\ntotal_inactive_file 3\ninactive_file 4\nMemTotal:       5 kB\nlast 6";
  CHECK(find_number(table, "inactive_file") == 4);
  CHECK(find_number(table, "total_inactive_file") == 3);
  CHECK(find_number(table, "MemTotal:") == 5);
  CHECK(find_number(table, "last") == 6);
  CHECK_FALSE(find_number(table, "inactive"));
  CHECK_FALSE(find_number(table, "active_file"));
}

TEST_CASE("a table that breaks off holds no number") {
  CHECK_FALSE(find_number("", "key"));
  CHECK_FALSE(find_number("key", "key"));
  CHECK_FALSE(find_number("key ", "key"));
  CHECK_FALSE(find_number("key    ", "key"));
  CHECK_FALSE(find_number("key x\n", "key"));
  CHECK_FALSE(find_number("key\n1\n", "key"));
}

}  // namespace evictd::os::numbers_test
