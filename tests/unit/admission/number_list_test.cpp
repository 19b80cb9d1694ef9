#include "admission/number_list.hpp"

#include <doctest/doctest.h>

#include "fixture/result.hpp"

namespace evictd::admission::number_list_test {

TEST_CASE("a list of numbers reads as the kernel writes it") {
  CHECK(parse_number_list("0-3,8").value() == std::set{0, 1, 2, 3, 8});
  CHECK(parse_number_list("5\n").value() == std::set{5});
  CHECK(parse_number_list("8,0-1").value() == std::set{0, 1, 8});
  CHECK(parse_number_list("\n").value().empty());
}

TEST_CASE("what is no list of numbers is said to be none") {
  for (const auto* text : {"a", "1-", "-1", "3-1", "1,", ",1", "1,,2", "0-4000000000", "1 2", "0x1"}) {
    CAPTURE(text);
    REQUIRE_FALSE(parse_number_list(text).has_value());
    CHECK(parse_number_list(text).error().message ==
          "\"" + std::string(text) + "\" is no list of numbers such as 0-3,8");
  }
}

TEST_CASE("a list prints as short as it can be") {
  CHECK(print_number_list({}) == "");
  CHECK(print_number_list({4}) == "4");
  CHECK(print_number_list({0, 1, 2, 5, 7, 8}) == "0-2,5,7-8");
}

TEST_CASE("the error about a list is one printable line") {
  CHECK(fixture::error_of(parse_number_list("1\n2")) == R"("1\n2" is no list of numbers such as 0-3,8)");
}

}  // namespace evictd::admission::number_list_test
