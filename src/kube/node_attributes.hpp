#pragma once
#include <string_view>

#include "core/error.hpp"
#include "core/node.hpp"

namespace evictd::kube {

/// What of a v1.Node admission goes by: labels, taints, what is allocatable, and whether its runtime can be strict
/// about supplemental groups. Quantities that are none are an error that names the resource.
[[nodiscard]] Result<core::Node> parse_node_attributes(std::string_view body);

}  // namespace evictd::kube
