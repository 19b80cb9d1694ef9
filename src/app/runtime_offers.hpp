#pragma once
#include <optional>
#include <string>
#include <vector>

#include "config/agent_configuration.hpp"
#include "host/offers.hpp"

// What is asked of the container runtime before evictd runs. On the calling thread, which waits.

namespace evictd::app {

/// The cgroup driver that the runtime at the endpoint goes by, "systemd" or "cgroupfs" (CRI RuntimeConfig:
/// containerd 2.0 and later). Absent: it does not say, or not within half a second.
[[nodiscard]] std::optional<std::string> ask_cgroup_driver(const std::string& endpoint);

/// Whether the runtime answers, and what it has that not every one has.
[[nodiscard]] std::vector<host::Offer> probe_runtime(const config::CriSettings& cri);

}  // namespace evictd::app
