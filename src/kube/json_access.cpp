#include "kube/json_access.hpp"

#include <fmt/format.h>

#include <boost/json/parse.hpp>

namespace evictd::kube {

namespace json = boost::json;

Result<json::value> parse_document(std::string_view text, std::string_view what) {
  boost::system::error_code error;
  auto document = json::parse(text, error);
  if (error) return fail(fmt::format("{} is not JSON: {}", what, error.message()));
  return document;
}

const json::value* value_at(const json::value& document, std::string_view pointer) {
  boost::system::error_code error;
  return document.find_pointer(pointer, error);
}

const json::object* object_at(const json::value& document, std::string_view pointer) {
  const auto* value = value_at(document, pointer);
  return value == nullptr ? nullptr : value->if_object();
}

const json::array* array_at(const json::value& document, std::string_view pointer) {
  const auto* value = value_at(document, pointer);
  return value == nullptr ? nullptr : value->if_array();
}

std::string text_at(const json::value& document, std::string_view pointer) {
  const auto* value = value_at(document, pointer);
  return value == nullptr ? std::string() : text_of(*value);
}

std::string text_of(const json::value& value) {
  const auto* text = value.if_string();
  return text == nullptr ? std::string() : std::string(*text);
}

std::string text_in(const json::object& object, std::string_view key) {
  const auto* value = object.if_contains(key);
  return value == nullptr ? std::string() : text_of(*value);
}

}  // namespace evictd::kube
