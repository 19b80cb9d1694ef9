#pragma once
#include "config/kubelet_configuration.hpp"
#include "core/error.hpp"
#include "core/shutdown_plan.hpp"

namespace evictd::config {

/// In which groups the node's pods end when it shuts down. A configuration that was read has no error here.
[[nodiscard]] Result<core::ShutdownGroups> shutdown_groups(const KubeletConfiguration& configuration);

}  // namespace evictd::config
