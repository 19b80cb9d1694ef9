#pragma once
#include "admission/chain.hpp"
#include "config/kubelet_configuration.hpp"

namespace evictd::config {

/// What a node's KubeletConfiguration says to admission.
[[nodiscard]] admission::ChainSettings chain_settings(const KubeletConfiguration& kubelet);

}  // namespace evictd::config
