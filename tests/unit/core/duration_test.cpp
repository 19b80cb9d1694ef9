#include "core/duration.hpp"

#include <doctest/doctest.h>

#include "fixture/result.hpp"

namespace evictd::core::duration_test {
namespace {

using namespace std::chrono_literals;
using fixture::error_of;
using fixture::value_of;

Duration parsed(std::string_view text) { return value_of(parse_duration(text)); }

}  // namespace

TEST_CASE("every unit of Go's durations is known") {
  CHECK(parsed("3ns") == 3ns);
  CHECK(parsed("3us") == 3us);
  CHECK(parsed("3µs") == 3us);  // micro sign
  CHECK(parsed("3μs") == 3us);  // Greek mu
  CHECK(parsed("3ms") == 3ms);
  CHECK(parsed("3s") == 3s);
  CHECK(parsed("3m") == 3min);
  CHECK(parsed("3h") == 3h);
}

TEST_CASE("terms add up, in any order, with fractions and a sign before all of them") {
  CHECK(parsed("1m30s") == 90s);
  CHECK(parsed("30s1m") == 90s);
  CHECK(parsed("1h0m0s") == 1h);
  CHECK(parsed("1.5h") == 90min);
  CHECK(parsed(".5s") == 500ms);
  CHECK(parsed("5.s") == 5s);
  CHECK(parsed("0.000001ms") == 1ns);
  CHECK(parsed("0.0000001ms") == 0ns);
  CHECK(parsed("0.1000000000000000000000000000000000h") == 6min);
  CHECK(parsed("-250ms") == -250ms);
  CHECK(parsed("+1s") == 1s);
  CHECK(parsed("-1m30s") == -90s);
}

TEST_CASE("zero needs no unit, any other number does") {
  CHECK(parsed("0") == 0s);
  CHECK(parsed("+0") == 0s);
  CHECK(parsed("-0") == 0s);
  CHECK(parsed("0s") == 0s);
  CHECK(error_of(parse_duration("30")) == "\"30\" lacks a unit: write 90s or 1m30s");
  CHECK(error_of(parse_duration("1.5")) == "\"1.5\" lacks a unit: write 90s or 1m30s");
  CHECK(error_of(parse_duration("00")) == "\"00\" lacks a unit: write 90s or 1m30s");
}

TEST_CASE("what is no duration is an error that repeats it") {
  for (const std::string text : {"",    "-",      "+",     ".",  "s",   ".s",   "-.s",  "1d",   "1 s", " 1s",
                                 "1s ", "1m 30s", "1h-5m", "1S", "1s1", "--1s", "1e3s", "1,5s", "∞",   "five"})
    CHECK_MESSAGE(!parse_duration(text).has_value(), text);
  CHECK(error_of(parse_duration("5 minutes")) == "\"5 minutes\" is not a duration such as 90s or 1m30s");
}

TEST_CASE("durations reach from -2^63 to 2^63-1 ns") {
  CHECK(parsed("9223372036854775807ns") == Duration::max());
  CHECK(parsed("-9223372036854775808ns") == Duration::min());
  CHECK(parsed("2562047h47m16.854775807s") == Duration::max());
  for (const std::string text : {"9223372036854775808ns", "-9223372036854775809ns", "2562048h", "292y", "9999999999h",
                                 "99999999999999999999999999999999999999999999999h", "2562047h47m16.854775808s"})
    CHECK_MESSAGE(!parse_duration(text).has_value(), text);
  CHECK(error_of(parse_duration("99999999999999999999h")) ==
        "\"99999999999999999999h\" is longer than a duration can be (about 292 years)");
}

TEST_CASE("durations print as Go prints them") {
  CHECK(to_string(0s) == "0s");
  CHECK(to_string(1ns) == "1ns");
  CHECK(to_string(1500ns) == "1.5µs");
  CHECK(to_string(250ms) == "250ms");
  CHECK(to_string(1ms + 5ns) == "1.000005ms");
  CHECK(to_string(1s) == "1s");
  CHECK(to_string(1500ms) == "1.5s");
  CHECK(to_string(90s) == "1m30s");
  CHECK(to_string(1min) == "1m0s");
  CHECK(to_string(2h) == "2h0m0s");
  CHECK(to_string(100h + 1ns) == "100h0m0.000000001s");
  CHECK(to_string(Duration{-90s}) == "-1m30s");
  CHECK(to_string(Duration::max()) == "2562047h47m16.854775807s");
  CHECK(to_string(Duration::min()) == "-2562047h47m16.854775808s");
}

TEST_CASE("the error about a duration is one printable line") {
  CHECK(error_of(parse_duration("1\n\x1b[2J\xff")).starts_with(R"("1\n\x1b[2J\xff" is not a duration)"));
}

}  // namespace evictd::core::duration_test
