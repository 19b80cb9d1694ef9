#pragma once
#include <map>
#include <optional>
#include <string>

#include "core/observation.hpp"
#include "core/pod.hpp"
#include "core/threshold.hpp"
#include "core/usage.hpp"

namespace evictd::core {

using Annotations = std::map<std::string, std::string, std::less<>>;

/// What the pod's status and events say, word for word as the kubelet writes it.
struct EvictionMessage {
  std::string text;
  Annotations annotations;

  friend bool operator==(const EvictionMessage&, const EvictionMessage&) = default;
};

/// For a pod evicted because of `acted`, which `observation` met; `usage` is absent where the pod has no stats
/// (kubelet: evictionMessage; kubelet-spec section 6).
[[nodiscard]] EvictionMessage eviction_message(const Threshold& acted, const Observation& observation, const Pod& pod,
                                               const std::optional<PodUsage>& usage);

}  // namespace evictd::core
