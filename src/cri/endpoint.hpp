#pragma once
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace evictd::cri {

/// Before the path, in the one form.
inline constexpr std::string_view endpoint_scheme = "unix://";
inline constexpr std::string_view default_endpoint = "unix:///run/containerd/containerd.sock";

/// The endpoint in the one form evictd uses, "unix:///PATH", from "unix:///PATH", "unix:PATH" or a bare PATH, as the
/// kubelet's containerRuntimeEndpoint and crictl accept them. PATH is absolute and at most 107 bytes long (unix(7):
/// sun_path).
[[nodiscard]] Result<std::string> parse_endpoint(std::string_view text);

}  // namespace evictd::cri
