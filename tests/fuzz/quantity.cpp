#include "core/quantity.hpp"

#include "target.hpp"

// A quantity is read back from its text and from its canonical text, and its numbers are those of one amount.

namespace evictd::fuzz {

void run(std::string_view input) {
  const auto quantity = core::Quantity::parse(input);
  if (!is_good(quantity)) return;

  const auto printed = quantity->to_string();
  const auto again = value_of(core::Quantity::parse(printed));
  check(again == *quantity, "printed and read again it is the same amount");
  check(again.to_string() == printed, "and the same text");

  const auto canonical = (core::Quantity{} + *quantity).to_string();
  check(value_of(core::Quantity::parse(canonical)) == *quantity, "its canonical text is the same amount");
  check((*quantity - *quantity).is_zero(), "less itself it is nothing");
  check(quantity->is_negative() == (quantity->milli_value() < 0), "thousandths have its sign");
  check(quantity->is_zero() == (quantity->value() == 0), "rounded away from zero it is not nothing");
}

}  // namespace evictd::fuzz
