#include "core/quantity.hpp"

#include <doctest/doctest.h>

#include <limits>

#include "fixture/result.hpp"

namespace evictd::core::quantity_test {
namespace {

using fixture::value_of;

constexpr auto max = std::numeric_limits<std::int64_t>::max();

Quantity quantity(std::string_view text) { return value_of(Quantity::parse(text)); }
std::int64_t value(std::string_view text) { return quantity(text).value(); }
std::string printed(std::string_view text) { return quantity(text).to_string(); }
/// The canonical text, which any sum has.
std::string canonical(std::string_view text) { return (Quantity{} + quantity(text)).to_string(); }
bool parses(std::string_view text) { return Quantity::parse(text).has_value(); }

}  // namespace

TEST_CASE("a plain number is itself") {
  CHECK(value("0") == 0);
  CHECK(value("7") == 7);
  CHECK(value("+7") == 7);
  CHECK(value("-7") == -7);
  CHECK(value("007") == 7);
  CHECK(value("9223372036854775807") == max);
}

TEST_CASE("decimal suffixes are powers of a thousand") {
  CHECK(value("1k") == 1'000);
  CHECK(value("1M") == 1'000'000);
  CHECK(value("1G") == 1'000'000'000);
  CHECK(value("1T") == 1'000'000'000'000);
  CHECK(value("1P") == 1'000'000'000'000'000);
  CHECK(value("1E") == 1'000'000'000'000'000'000);
  CHECK(quantity("250m").milli_value() == 250);
  CHECK(quantity("250000u").milli_value() == 250);
  CHECK(quantity("250000000n").milli_value() == 250);
}

TEST_CASE("binary suffixes are powers of 1024") {
  CHECK(value("1Ki") == 1024);
  CHECK(value("1Mi") == 1'048'576);
  CHECK(value("1Gi") == 1'073'741'824);
  CHECK(value("1Ti") == 1'099'511'627'776);
  CHECK(value("1Pi") == 1'125'899'906'842'624);
  CHECK(value("1Ei") == 1'152'921'504'606'846'976);
  CHECK(value("-2Ki") == -2048);
}

TEST_CASE("exponents may be signed and written with e or E; 1E alone is an exa") {
  CHECK(value("1e3") == 1'000);
  CHECK(value("1E3") == 1'000);
  CHECK(value("1e+3") == 1'000);
  CHECK(value("5000e-3") == 5);
  CHECK(value("1.5e2") == 150);
  CHECK(quantity("1e-3").milli_value() == 1);
  CHECK(value("2E") == 2'000'000'000'000'000'000);
}

TEST_CASE("fractions may stand with or without digits on either side of the dot") {
  CHECK(value("1.5Gi") == 1'610'612'736);
  CHECK(value(".5Ki") == 512);
  CHECK(value("5.") == 5);
  CHECK(value("5.Ki") == 5120);
  CHECK(quantity("0.25").milli_value() == 250);
  CHECK(quantity("1.5k") == quantity("1500"));
  CHECK(quantity("0.000000000000000001Ei") == quantity("1152921505n"));
  CHECK(value("0.3333333333333333333333333333333333Ei") == 384'307'168'202'282'326);
}

TEST_CASE("whole values are rounded away from zero") {
  CHECK(value("0.1") == 1);
  CHECK(value("1.001") == 2);
  CHECK(value("-0.1") == -1);
  CHECK(value("-1.5") == -2);
  CHECK(value("1n") == 1);
  CHECK(quantity("0.0001").milli_value() == 1);
  CHECK(quantity("-0.0001").milli_value() == -1);
  CHECK(quantity("1500m").value() == 2);
}

TEST_CASE("what is finer than a billionth is rounded away from zero, so that something stays something") {
  CHECK(quantity("0.0000000001") == quantity("1n"));
  CHECK(quantity("-0.0000000001") == quantity("-1n"));
  CHECK(quantity("0.1n") == quantity("1n"));
  CHECK(quantity("1.0000000001") == quantity("1000000001n"));
  CHECK(quantity("1e-30") == quantity("1n"));
  CHECK(quantity("0e-30").is_zero());
  CHECK(quantity("0.00000000000000000000").is_zero());
}

TEST_CASE("binary quantities cap at 2^63-1, decimal ones go beyond and saturate when made whole") {
  CHECK(value("8Ei") == max);
  CHECK(value("9999999Ei") == max);
  CHECK(quantity("8Ei") == quantity("9223372036854775807"));
  CHECK(value("-9999999Ei") == -max);
  CHECK(value("10E") == max);
  CHECK(value("-10E") == std::numeric_limits<std::int64_t>::min());
  CHECK(quantity("10E") > quantity("9223372036854775807"));
  CHECK(value("99999999999999999999Ki") == max);
}

TEST_CASE("decimal quantities up to 1e29 are exact, beyond that an error") {
  CHECK(printed("1e29") == "100e27");
  CHECK(quantity("100000000000E") == quantity("1e29"));
  for (const std::string text : {"2e29", "17e28", "18e28", "34e28", "1e30", "1e38", "1e39", "1e40", "1e1000",
                                 "1e99999999999", "999999999999999999999999999999", "-2e29"})
    CHECK_MESSAGE(!parses(text), text);
}

TEST_CASE("an amount that Kubernetes has taken is no more than the largest there is, and sums of it stay that") {
  const auto capped = [](std::string_view text) { return value_of(Quantity::parse_capped(text)); };
  const auto largest = quantity("1e29");
  for (const std::string text : {"2e29", "1e30", "1E400", "1e2147483647", "999999999999999999999999999999"})
    CHECK_MESSAGE(capped(text) == largest, text);
  CHECK(capped("-1e30") == quantity("-1e29"));
  CHECK(capped("1e30") + capped("1e30") == largest);
  CHECK(capped("1e30").value() == max);
  CHECK(capped("1e30").milli_value() == max);
  CHECK(capped("1e30").to_string() == "100e27");  // which can be read again
  CHECK(capped("100.035k").to_string() == "100.035k");
  CHECK(fixture::error_of(Quantity::parse_capped("5x")) == "\"5x\" is not a quantity such as 150Mi, 1.5G or 500");
}

TEST_CASE("an exponent has 32 bits, of one that Go can read in 64") {
  CHECK(quantity("1e4294967297") == quantity("10"));
  CHECK(quantity("1e-4294967296") == quantity("1"));
  CHECK(quantity("1e-2147483648") == quantity("1n"));
  CHECK_FALSE(parses("1e9223372036854775808"));
  CHECK_FALSE(parses("1e-9223372036854775809"));
}

TEST_CASE("sums of the largest quantities stay the largest") {
  const auto largest = quantity("1e29");
  CHECK(largest + largest == largest);
  CHECK(quantity("-1e29") - largest == quantity("-1e29"));
}

TEST_CASE("garbage is an error that repeats it") {
  for (const std::string text :
       {"",      " ",    "1 ",  " 1",    "abc", "1K",  "1KB",  "1MB", "1Mib",  "1ki",  "1mi", "1.1.", "1..1",
        "1e",    "1e+",  "1e-", "1e1.5", "--1", "+-1", "+",    "-",   ".",     "-.",   "k",   "Ki",   "1,5",
        "1_000", "0x10", "1Zi", "1i",    "NaN", "inf", "1eE3", "1k5", "1e+-3", "1 Gi", "½",   "１",   "1e++3"})
    CHECK_MESSAGE(!parses(text), text);
  CHECK(fixture::error_of(Quantity::parse("150MB")) == "\"150MB\" is not a quantity such as 150Mi, 1.5G or 500");
}

TEST_CASE("the canonical text has the largest suffix that leaves a whole number, in the format it was given in") {
  CHECK(canonical("1024Ki") == "1Mi");
  CHECK(canonical("1.5Gi") == "1536Mi");
  CHECK(canonical("1000k") == "1M");
  CHECK(canonical("1500k") == "1500k");
  CHECK(canonical("1000000") == "1M");
  CHECK(canonical("100035") == "100035");
  CHECK(canonical("0.5") == "500m");
  CHECK(canonical("1000m") == "1");
  CHECK(canonical("1000000n") == "1m");
  CHECK(canonical("1e6") == "1e6");
  CHECK(canonical("1000e3") == "1e6");
  CHECK(canonical("15e5") == "1500e3");
  CHECK(canonical("1e-3") == "1e-3");
  CHECK(canonical("0Gi") == "0");
  CHECK(canonical("-1.5Gi") == "-1536Mi");
  CHECK(canonical("-1000") == "-1k");
}

TEST_CASE("binary quantities below 1024 or with a fraction print as decimals") {
  CHECK(canonical("0.5Ki") == "512");
  CHECK(canonical("0.25Ki") == "256");
  CHECK(canonical("-0.5Ki") == "-512");
  CHECK(canonical("1.0001Ki") == "1024102400u");
  CHECK(canonical("1Ki") == "1Ki");
  CHECK(Quantity::bytes(1000).to_string() == "1k");
  CHECK(Quantity::bytes(1500 * 1024 * 1024LL).to_string() == "1500Mi");
  CHECK(Quantity::bytes(1).to_string() == "1");
  CHECK(Quantity::bytes(0).to_string() == "0");
  CHECK(Quantity::bytes(max).to_string() == "9223372036854775807");
  CHECK(Quantity::count(5000).to_string() == "5k");
  CHECK(Quantity::count(-5).to_string() == "-5");
}

TEST_CASE("a parsed quantity keeps its text where Kubernetes keeps it") {
  CHECK(printed("100.035k") == "100.035k");
  CHECK(printed("1E6") == "1E6");
  CHECK(printed("+5") == "+5");
  CHECK(printed("1.5") == "1500m");      // one digit after the dot: the exponent is no multiple of 3
  CHECK(printed("1.500") == "1.500");    // ... and here it is
  CHECK(printed("1000k") == "1M");       // ends in 000
  CHECK(printed("0.5") == "500m");       // begins with 0
  CHECK(printed("1001Ki") == "1001Ki");  // not divisible by 8
  CHECK(printed("1024Ki") == "1Mi");
  CHECK(printed("008Ki") == "8Ki");
  CHECK(printed("007Ki") == "007Ki");
  CHECK(printed("1.5Gi") == "1536Mi");
}

TEST_CASE("a sum drops the kept text and a zero takes the format of what is added to it") {
  CHECK(canonical("100.035k") == "100035");
  CHECK(canonical("1E6") == "1e6");
  CHECK(canonical("+5") == "5");
  CHECK((quantity("1Gi") + quantity("1000")).to_string() == "1073742824");
  CHECK((quantity("1k") + quantity("1Ki")).to_string() == "2024");
  CHECK((quantity("0.0001Ki") + quantity("1Ki")).to_string() == "1024102400u");  // too small to be binary
  CHECK((quantity("0") + quantity("1Mi")).to_string() == "1Mi");
  CHECK((quantity("0Mi") + quantity("1M")).to_string() == "1M");
  CHECK((quantity("1Gi") - quantity("512Mi")).to_string() == "512Mi");
  CHECK((quantity("512Mi") - quantity("1Gi")).to_string() == "-512Mi");
}

TEST_CASE("quantities compare by amount, whatever their text") {
  CHECK(quantity("1Gi") == quantity("1024Mi"));
  CHECK(quantity("1000m") == quantity("1"));
  CHECK(quantity("1G") < quantity("1Gi"));
  CHECK(quantity("-1") < quantity("0"));
  CHECK(quantity("1n") > Quantity{});
  CHECK(quantity("-1n").is_negative());
  CHECK_FALSE(quantity("0").is_negative());
}

TEST_CASE("the error about a quantity is one printable line") {
  CHECK(fixture::error_of(Quantity::parse("1\n\x1b[2J\xff")).starts_with(R"("1\n\x1b[2J\xff" is not a quantity)"));
}

}  // namespace evictd::core::quantity_test
