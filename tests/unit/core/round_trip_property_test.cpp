#include <doctest/doctest.h>

#include "core/duration.hpp"
#include "core/quantity.hpp"
#include "fixture/random.hpp"
#include "fixture/result.hpp"

// What is printed is read back as what it was.

namespace evictd::core::round_trip_property_test {
namespace {

using fixture::Random;
using fixture::seeds;
using fixture::value_of;

std::string digits(Random& random, std::int64_t most) {
  std::string text;
  for (auto left = random.between(1, most); left > 0; --left) text += random.pick({'0', '0', '1', '5', '7', '9'});
  return text;
}

std::string any_quantity(Random& random) {
  std::string text = random.pick({"", "", "", "-", "+"});
  text += digits(random, 12);
  if (random.chance(40)) text += "." + digits(random, 12);
  return text + random.pick({"",   "n",  "u",  "m",  "k",  "M",  "G",  "T",   "P",   "E",
                             "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E-3", "e+9", "e-12"});
}

}  // namespace

TEST_CASE(
    "property: any quantity is read back from its text and from its canonical text, and both stay what they are") {
  for (const auto seed : seeds(20'000)) {
    CAPTURE(seed);
    Random random{seed};
    const auto text = any_quantity(random);
    CAPTURE(text);
    const auto quantity = Quantity::parse(text);
    if (!quantity) {
      // Only what is larger than any quantity may be refused.
      CHECK(quantity.error().message.find("too large") != std::string::npos);
      continue;
    }
    const auto printed = quantity->to_string();
    CHECK(value_of(Quantity::parse(printed)) == *quantity);
    CHECK(value_of(Quantity::parse(printed)).to_string() == printed);

    const auto canonical = (Quantity{} + *quantity).to_string();
    CHECK(value_of(Quantity::parse(canonical)) == *quantity);
    CHECK((Quantity{} + value_of(Quantity::parse(canonical))).to_string() == canonical);
  }
}

TEST_CASE("property: any number of bytes or things is read back from its text") {
  for (const auto seed : seeds(20'000)) {
    CAPTURE(seed);
    Random random{seed};
    const auto number = random.magnitude();
    CHECK(value_of(Quantity::parse(Quantity::bytes(number).to_string())).value() == number);
    CHECK(value_of(Quantity::parse(Quantity::count(number).to_string())).value() == number);
  }
}

TEST_CASE("property: sums of quantities are exact, and taking away what was added leaves what was there") {
  for (const auto seed : seeds(5'000)) {
    CAPTURE(seed);
    Random random{seed};
    const auto a = random.magnitude() / 2;
    const auto b = random.magnitude() / 2;
    const auto sum = Quantity::bytes(a) + Quantity::count(b);
    CHECK(sum.value() == a + b);
    CHECK(sum - Quantity::count(b) == Quantity::bytes(a));
    CHECK((Quantity::bytes(a) < Quantity::bytes(b)) == (a < b));
  }
}

TEST_CASE("property: any duration is read back from its text") {
  for (const auto seed : seeds(20'000)) {
    CAPTURE(seed);
    Random random{seed};
    const Duration duration{random.chance(50) ? random.magnitude() : random.between(INT64_MIN, INT64_MAX)};
    CAPTURE(to_string(duration));
    CHECK(value_of(parse_duration(to_string(duration))) == duration);
  }
}

}  // namespace evictd::core::round_trip_property_test
