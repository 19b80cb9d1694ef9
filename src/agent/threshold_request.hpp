#pragma once
#include <string>

#include "core/error.hpp"
#include "core/eviction_settings.hpp"
#include "core/threshold.hpp"
#include "core/threshold_overlay.hpp"

namespace evictd::v1 {
class UpdateThresholdsRequest;
}

namespace evictd::agent {

struct ThresholdLayers;

/// What the request's changes lay over the settings in force. Errors name the signal and what to do; whether the values
/// are any good is for core::make_policy.
[[nodiscard]] Result<core::ThresholdOverlay> overlay_of(const v1::UpdateThresholdsRequest& request,
                                                        const core::EvictionSettings& in_force);

/// Where a threshold comes from.
struct ThresholdOrigin {
  std::string source;   ///< "default", "kubelet configuration", the name of a drop-in, "live", "derived"
  std::string place{};  ///< "/var/lib/kubelet/config.yaml:12", "the flags of kubelet (pid 812)"; empty: written nowhere
};
[[nodiscard]] ThresholdOrigin origin_of(const core::Threshold& threshold, const ThresholdLayers& layers,
                                        const core::ThresholdOverlay& live);

}  // namespace evictd::agent
