#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/pod.hpp"

// CRI leaves it to the runtime what a verbose status says beyond the API. containerd (1.6 to 2.x) puts one JSON object
// under info["info"] for containers and sandboxes, and its configuration under info["config"] for itself. What is
// absent from it is left at its default; what is there with the wrong type, and text that is not JSON, is an error.
namespace evictd::pods {

/// What the container was created with. 0: not given.
struct LinuxResources {
  std::int64_t memory_limit = 0;  ///< bytes
  std::int64_t oom_score_adj = 0;
  std::int64_t cpu_shares = 0;
  std::int64_t cpu_quota = 0;   ///< microseconds of each period
  std::int64_t cpu_period = 0;  ///< microseconds

  friend bool operator==(const LinuxResources&, const LinuxResources&) = default;
};

struct ContainerInfo {
  std::int64_t pid = 0;  ///< of its first process, in the runtime's pid namespace; 0 while it is not running
  /// config.linux.resources: as they were asked for. (ContainerStatus.resources has what was carried out: there a
  /// containerd without CAP_SYS_RESOURCE reports 0 for an oom_score_adj of -997.) Absent when the runtime does not show
  /// the configuration.
  std::optional<LinuxResources> resources{};
  std::string cgroups_path{};  ///< runtimeSpec.linux.cgroupsPath, see container_cgroup()

  friend bool operator==(const ContainerInfo&, const ContainerInfo&) = default;
};

/// Labels and annotations are not read from here: a listed sandbox has them.
struct SandboxInfo {
  std::string cgroup_parent{};               ///< config.linux.cgroup_parent, see pod_cgroup()
  std::vector<core::HostPort> host_ports{};  ///< of config.port_mappings, see add_host_port()

  friend bool operator==(const SandboxInfo&, const SandboxInfo&) = default;
};

/// Of the runtime's own configuration.
struct RuntimeInfo {
  /// sandboxImage, as it is configured: the image of every pod's sandbox. containerd 2.0 does not say it any more; it
  /// marks that image as pinned.
  std::string sandbox_image{};

  friend bool operator==(const RuntimeInfo&, const RuntimeInfo&) = default;
};

[[nodiscard]] Result<ContainerInfo> parse_container_info(std::string_view json);
[[nodiscard]] Result<SandboxInfo> parse_sandbox_info(std::string_view json);
[[nodiscard]] Result<RuntimeInfo> parse_runtime_info(std::string_view json);

}  // namespace evictd::pods
