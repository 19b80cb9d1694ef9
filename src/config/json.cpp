#include "config/json.hpp"

#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace evictd::config {

namespace json = boost::json;

Value::Value(std::shared_ptr<const json::value> document, std::string origin, std::size_t most_elements)
    : document_(std::move(document)),
      json_(document_.get()),
      source_(std::make_shared<Source>(std::move(origin))),
      place_{0, 0} {
  source_->elements.most = most_elements;
}

Value::Value(const json::value& json, const Value& parent, std::string path)
    : document_(parent.document_), json_(&json), source_(parent.source_), path_(std::move(path)), place_{0, 0} {}

/// Of a string, or a number or truth value as JSON writes it.
std::optional<std::string> Value::json_text() const {
  if (json_->is_string()) return std::string(json_->get_string());
  if (json_->is_structured() || json_->is_null()) return std::nullopt;
  return json::serialize(*json_);
}

std::vector<Value> Value::json_items() const {
  std::vector<Value> values;
  values.reserve(json_->get_array().size());
  for (const auto& item : json_->get_array())
    values.push_back(Value(item, *this, fmt::format("{}[{}]", path_, values.size())));
  return values;
}

std::vector<Value::Entry> Value::json_entries(std::string_view separator) const {
  std::vector<Entry> entries;
  entries.reserve(json_->get_object().size());
  for (const auto& member : json_->get_object()) {
    const std::string key(member.key());
    entries.push_back(
        {key, Value(member.value(), *this, path_.empty() ? key : fmt::format("{}{}{}", path_, separator, key))});
  }
  return entries;
}

Result<void> Value::take_elements() const {
  if (json_ == nullptr || !json_->is_structured()) return {};
  const auto count = json_->is_array() ? json_->get_array().size() : json_->get_object().size();
  auto& [most, taken] = source_->elements;
  if (count > most - taken)
    return std::unexpected(error(fmt::format("with this, lists and mappings have more than {} elements in all", most)));
  taken += count;
  return {};
}

Result<Value> parse_json(std::string_view text, std::string_view origin, std::size_t most_elements) {
  // Kubernetes' objects nest about 20 deep; the bound keeps a hostile one from exhausting the stack.
  constexpr json::parse_options options{.max_depth = 64};
  boost::system::error_code error;
  auto document = json::parse(text, error, {}, options);
  if (error) return fail(fmt::format("{}: is not JSON: {}", origin, error.message()));
  return Value(std::make_shared<const json::value>(std::move(document)), std::string(origin), most_elements);
}

}  // namespace evictd::config
