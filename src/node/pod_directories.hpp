#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/usage.hpp"
#include "node/disk_usage.hpp"

namespace evictd::node {

/// By what a pod's directories are named.
struct PodName {
  std::string uid;
  std::string name_space;
  std::string name;
};

/// Where the kubelet keeps them.
struct PodRoots {
  std::filesystem::path logs;     ///< node.podLogsDir
  std::filesystem::path kubelet;  ///< node.kubeletRoot
};

/// A volume that has a directory in the pod's. Where only the runtime is known, the plugin tells what kind it is.
struct VolumeDirectory {
  std::string name;
  std::string plugin;  ///< "kubernetes.io~empty-dir", "kubernetes.io~projected", …

  friend bool operator==(const VolumeDirectory&, const VolumeDirectory&) = default;
};

/// A pod's logs and local volumes on disk, without its writable layers.
struct PodDiskReading {
  using ByName = std::map<std::string, core::DiskUsage, std::less<>>;

  ByName logs{};     ///< by container
  ByName volumes{};  ///< the local ones that have a directory: emptyDir of any medium, configMap, gitRepo
  /// Files that belong to no container: directly in the log directory, and etc-hosts.
  core::DiskUsage pod_level{.bytes = 0, .inodes = 0};
  std::vector<VolumeDirectory> directories{};  ///< of all plugins, sorted by plugin and name
  bool complete = true;                        ///< false: there is more than this
  std::optional<Error> error{};                ///< the first thing that could not be read
  core::Instant time{};                        ///< when the measuring began
};

/// The directory of all of a pod's logs: <logs>/NAMESPACE_NAME_UID. (kubelet: BuildPodLogsDirectory)
[[nodiscard]] std::filesystem::path log_directory(const PodRoots& roots, const PodName& pod);
/// <kubelet>/pods/UID
[[nodiscard]] std::filesystem::path pod_directory(const PodRoots& roots, const PodName& pod);

/// Where its logs and local volumes are, whether they exist or not: what measure_pod_directories() walks.
/// None for a pod whose name leads elsewhere.
[[nodiscard]] std::vector<std::filesystem::path> local_directories(const PodRoots& roots, const PodName& pod);

/// Walks <logs>/NAMESPACE_NAME_UID/CONTAINER and <kubelet>/pods/UID/volumes/kubernetes.io~PLUGIN/VOLUME. A directory
/// that does not exist holds nothing. Each volume is a walk of its own, so that a memory-backed emptyDir, which is a
/// mounted tmpfs, is measured as well; other volumes (PVC, NFS, CSI, projected, …) are listed and never touched, as
/// their file systems may not answer. Blocks the calling thread, any thread.
[[nodiscard]] PodDiskReading measure_pod_directories(const PodRoots& roots, const PodName& pod, WalkBudget& budget);

}  // namespace evictd::node
