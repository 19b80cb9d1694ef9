#pragma once
#include <string_view>

namespace evictd::config {

/// Throws YAML::ParserException where yaml-cpp would find document after document without an end: in front of a comma
/// that stands in no list it takes an empty document and stays where it is ("a", b). As LoadAll it throws at whatever
/// else is malformed.
void check_progress(std::string_view text);

}  // namespace evictd::config
