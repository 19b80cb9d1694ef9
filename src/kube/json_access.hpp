#pragma once
#include <boost/json/value.hpp>
#include <string>
#include <string_view>

#include "core/error.hpp"

/// What a JSON document from the API server holds at a place. Pointers are RFC 6901's. What is missing, or is of
/// another type, is null or empty.
namespace evictd::kube {

/// `what` names the document in the error: "the node read from the API server".
[[nodiscard]] Result<boost::json::value> parse_document(std::string_view text, std::string_view what);

[[nodiscard]] const boost::json::value* value_at(const boost::json::value& document, std::string_view pointer);
[[nodiscard]] const boost::json::object* object_at(const boost::json::value& document, std::string_view pointer);
[[nodiscard]] const boost::json::array* array_at(const boost::json::value& document, std::string_view pointer);
[[nodiscard]] std::string text_at(const boost::json::value& document, std::string_view pointer);

[[nodiscard]] std::string text_of(const boost::json::value& value);
[[nodiscard]] std::string text_in(const boost::json::object& object, std::string_view key);

}  // namespace evictd::kube
