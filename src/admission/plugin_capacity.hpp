#pragma once
#include "admission/node_snapshot.hpp"

namespace evictd::admission {

/// Puts into the node's allocatable what its device plugins have: the healthy devices, and those that pods were given
/// and that are not healthy any more, so that pods which have their devices still fit. Of a resource whose
/// plugin has gone there is at least what pods were given; of one that the configuration names there is what the node
/// says, be it nothing. Once more changes nothing. (kubelet: GetCapacity, sanitizeNodeAllocatable)
void add_plugin_capacity(NodeSnapshot& node);

}  // namespace evictd::admission
