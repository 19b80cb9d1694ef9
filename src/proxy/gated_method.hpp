#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace evictd::proxy {

/// The calls that start a pod or a container of it, or give a container other resources: they wait for the agent's
/// leave.
enum class GatedMethod : std::uint8_t { RunPodSandbox, CreateContainer, UpdateContainerResources };

/// By the path of a call, "/runtime.v1.RuntimeService/RunPodSandbox". Also CRI v1alpha2, which containerd 1.6 still
/// serves and whose messages have the same shape on the wire. Go's servers, and so containerd, take a path without its
/// first slash as well.
[[nodiscard]] std::optional<GatedMethod> gated_method(std::string_view path);

}  // namespace evictd::proxy
