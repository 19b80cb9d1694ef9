#pragma once
#include <string>
#include <string_view>
#include <utility>

#include "admission/device.hpp"
#include "core/error.hpp"

// What an operator tells of the node in a word each.
namespace evictd::config {

/// "KEY=VALUE"; the value may be empty.
[[nodiscard]] Result<std::pair<std::string, std::string>> parse_label(std::string_view text);

/// "RESOURCE=ID" or "RESOURCE=ID@NUMA-NODES", such as "example.com/gpu=gpu0@0-1".
[[nodiscard]] Result<admission::Device> parse_device(std::string_view text);
[[nodiscard]] std::string print_device(const admission::Device& device);

}  // namespace evictd::config
