#pragma once
#include "admission/node_snapshot.hpp"

namespace evictd::admission {

/// Puts into the node's allocatable what its device plugins have: the healthy devices, and those that pods were given
/// and that are not healthy any more, so that pods which have their devices still fit. Of a resource without a plugin
/// there is at least what pods were given. Once more changes nothing. (kubelet: GetCapacity, sanitizeNodeAllocatable)
void add_plugin_capacity(NodeSnapshot& node);

}  // namespace evictd::admission
