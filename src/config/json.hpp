#pragma once
#include <cstddef>
#include <limits>
#include <string_view>

#include "config/yaml.hpp"
#include "core/error.hpp"

namespace evictd::config {

/// A JSON document as a Value. What JSON can say YAML can, too, but a list of a node's pods takes yaml-cpp twenty times
/// as long to parse: 110 pods of 8 KB 300 ms against 14 ms. Of a key that stands twice the last counts.
///
/// `origin`: what errors name. It is not JSON: "ORIGIN: is not JSON: …". `most_elements`: see Value::take_elements.
[[nodiscard]] Result<Value> parse_json(std::string_view text, std::string_view origin,
                                       std::size_t most_elements = std::numeric_limits<std::size_t>::max());

}  // namespace evictd::config
