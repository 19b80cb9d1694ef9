#include "core/number.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string_view>

namespace evictd::core::number_test {

TEST_CASE("a whole number is digits and nothing else, within the type") {
  CHECK(whole_number("0") == 0);
  CHECK(whole_number("007") == 7);
  CHECK(whole_number("-12") == -12);
  CHECK(whole_number("9223372036854775807") == INT64_MAX);
  CHECK(whole_number<std::uint64_t>("18446744073709551615") == UINT64_MAX);
  for (const auto* const text : {"", "-", "+1", " 1", "1 ", "1\n", "1x", "0x1", "1.0", "9223372036854775808"})
    CHECK_FALSE(whole_number(text));
  CHECK_FALSE(whole_number<std::int32_t>("2147483648"));
  CHECK_FALSE(whole_number<std::uint64_t>("-1"));
}

TEST_CASE("a number at the beginning is taken off, and nothing where there is none") {
  std::string_view text = "12,345kB";
  CHECK(take_count(text) == 12);
  CHECK(text == ",345kB");
  for (std::string_view none : {",345kB", "", "-1", "+1", " 1", "9223372036854775808"}) {
    const auto before = none;
    CHECK_FALSE(take_count(none));
    CHECK(none == before);
  }
  std::string_view large = "2147483648.1";
  CHECK_FALSE(take_count<int>(large));
}

TEST_CASE("a port is a number from 1 to 65535") {
  for (const auto* const text : {"1", "443", "0443", "65535"}) CHECK(is_port(text));
  for (const auto* const text : {"", "0", "00", "-1", "+1", "65536", "65979", "4294967297", "443 ", "https"})
    CHECK_FALSE(is_port(text));
}

}  // namespace evictd::core::number_test
