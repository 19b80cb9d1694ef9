#pragma once
#include <boost/json/fwd.hpp>
#include <string>

namespace evictd::commands {

/// Indented by two spaces, keys in their order.
[[nodiscard]] std::string to_json_text(const boost::json::value& value);
/// The same document as YAML.
[[nodiscard]] std::string to_yaml_text(const boost::json::value& value);

}  // namespace evictd::commands
