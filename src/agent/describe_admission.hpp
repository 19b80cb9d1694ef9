#pragma once
#include <evictd.pb.h>

#include <string>
#include <string_view>
#include <vector>

#include "admission/chain.hpp"
#include "admission/pod_allocation.hpp"
#include "core/pod.hpp"

// What admission decided, as the API's messages.
namespace evictd::agent {

/// The whole answer about a pod. `handlers`: the names of all that are there to be asked, in order.
[[nodiscard]] v1::AdmitResponse describe_decision(const core::Pod& pod, const admission::Decision& decision,
                                                  const std::vector<std::string_view>& handlers);
[[nodiscard]] v1::ContainerAllocation describe_allocation(const std::string& container,
                                                          const admission::ContainerAllocation& given);

}  // namespace evictd::agent
