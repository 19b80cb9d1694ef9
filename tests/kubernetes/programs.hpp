#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace kubernetes {

/// The directory with kube-apiserver and kubelet, as tools/kubernetes/build printed it: EVICTD_KUBERNETES_PROGRAMS.
/// Fails where the variable is not set.
[[nodiscard]] std::filesystem::path program(const std::string& name);

/// This source tree's tools/deploy/image, and the directory of its manifests.
[[nodiscard]] std::filesystem::path image_program();
[[nodiscard]] std::filesystem::path manifest_directory();

/// What this suite needs beyond a testbed and this machine lacks. Nothing when all is there.
[[nodiscard]] std::optional<std::string> missing_prerequisite();

/// A TCP port of the loopback that nobody listens on.
[[nodiscard]] std::uint16_t free_port();

}  // namespace kubernetes
