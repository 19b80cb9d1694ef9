#pragma once
#include <boost/json/fwd.hpp>
#include <cstdint>

#include "commands/command_line.hpp"
#include "core/pod.hpp"

namespace evictd::commands {

/// How the node will treat the pod: QoS class, criticality, priority, sums of requests and limits, and every
/// container's oom_score_adj on a node of `memory_capacity` bytes, init containers last.
[[nodiscard]] boost::json::object inspect(const core::Pod& pod, std::int64_t memory_capacity);

/// `evictd inspect -f POD.yaml [--memory-capacity 4Gi]`
[[nodiscard]] Command inspect_command();

}  // namespace evictd::commands
