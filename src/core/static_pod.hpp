#pragma once
#include <string_view>

#include "core/pod.hpp"

// What a kubelet writes of its own into the annotations of pods that it gives to the runtime. Of any other pod they are
// the text of whoever asked for it (pods/trust.hpp). is_static() is beside the pod. (kubelet: pkg/kubelet/types)
namespace evictd::core {

/// Where the kubelet has the pod from: "file", "http" or "api".
inline constexpr std::string_view config_source = "kubernetes.io/config.source";
/// Of the pod's manifest, by which its mirror pod is found.
inline constexpr std::string_view config_hash = "kubernetes.io/config.hash";
/// Of a mirror pod: the hash of its static pod's manifest.
inline constexpr std::string_view config_mirror = "kubernetes.io/config.mirror";

inline constexpr std::string_view source_api = "api";

/// What the annotation says; empty where the pod does not have it.
[[nodiscard]] inline std::string_view annotation(const Pod& pod, std::string_view key) {
  const auto found = pod.annotations.find(key);
  return found == pod.annotations.end() ? std::string_view{} : found->second;
}

/// Whether it names a source, and another one than the API server. is_static() takes an empty name for another source,
/// as the kubelet does: the pod is not evicted, but no manifest is looked for by it.
[[nodiscard]] inline bool names_static_source(const Pod& pod) {
  const auto source = annotation(pod, config_source);
  return !source.empty() && source != source_api;
}

}  // namespace evictd::core
