#include "pods/manifest_resources.hpp"

#include <utility>

#include "config/fields.hpp"

namespace evictd::pods {
namespace {

using config::Field;
using config::into;
using config::UnknownKeys;
using config::Value;

Result<void> read_any_amount(const Value& value, core::Quantity& target) {
  const auto text = value.text();
  if (!text) return std::unexpected(text.error());
  auto amount = core::Quantity::parse_capped(*text);
  if (!amount) return std::unexpected(value.error(amount.error()));
  if (amount->is_negative()) return std::unexpected(value.error('"' + amount->to_string() + "\" must not be negative"));
  target = *std::move(amount);
  return {};
}

}  // namespace

Result<void> read_amounts(const Value& value, core::ResourceList& target) {
  return config::read_map<read_any_amount>(value, target);
}

Result<void> read_size_limit(const Value& value, std::optional<core::Quantity>& target) {
  return config::read_optional<read_any_amount>(value, target);
}

Result<void> read_resources(const Value& value, core::ResourceRequirements& target) {
  using R = core::ResourceRequirements;
  static constexpr Field<R> fields[]{{"requests", into<&R::requests, read_amounts>},
                                     {"limits", into<&R::limits, read_amounts>}};
  return config::read_fields(value, target, fields, UnknownKeys::pass_over);
}

}  // namespace evictd::pods
