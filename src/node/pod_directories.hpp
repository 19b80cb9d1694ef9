#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/usage.hpp"
#include "node/disk_usage.hpp"
#include "node/layer_mounts.hpp"
#include "os/directory.hpp"
#include "os/file_error.hpp"

namespace evictd::node {

/// By what a pod's directories are named.
struct PodName {
  std::string uid;
  std::string name_space;
  std::string name;
  std::vector<std::string> containers{};  ///< ids of those whose writable layers are to be walked as well
};

/// Where the kubelet keeps them.
struct PodRoots {
  std::filesystem::path logs;             ///< the kubelet's podLogsDir
  std::filesystem::path kubelet;          ///< node.kubeletRoot
  std::shared_ptr<LayerMounts> layers{};  ///< where writable layers lie; null: they are not walked
};

/// A volume that has a directory in the pod's. Where only the runtime is known, the plugin tells what kind it is.
struct VolumeDirectory {
  std::string name;
  std::string plugin;  ///< "kubernetes.io~empty-dir", "kubernetes.io~projected", …

  friend bool operator==(const VolumeDirectory&, const VolumeDirectory&) = default;
};

/// A pod's logs and local volumes on disk, and the writable layers that were asked for.
struct PodDiskReading {
  using ByName = std::map<std::string, core::DiskUsage, std::less<>>;

  ByName logs{};     ///< by container
  ByName layers{};   ///< by container id: those that were asked for and found
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
[[nodiscard]] std::vector<std::string> local_directories(const PodRoots& roots, const PodName& pod);

/// A volume by its directory.
struct NamedVolume {
  std::string name;
  bool is_mounted = false;  ///< it is another file system's: of an emptyDir one in memory

  friend bool operator==(const NamedVolume&, const NamedVolume&) = default;
};

/// A pod's volumes of one plugin ("kubernetes.io~empty-dir"), sorted by name. A name that is not fit to be shown is no
/// volume's. What is mounted is not opened. Some 10 µs.
[[nodiscard]] std::vector<NamedVolume> named_volumes(const PodRoots& roots, const PodName& pod,
                                                     std::string_view plugin);

/// Walks <logs>/NAMESPACE_NAME_UID/CONTAINER and <kubelet>/pods/UID/volumes/kubernetes.io~PLUGIN/VOLUME. A directory
/// that does not exist holds nothing, and no symbolic link below the two roots is followed. Each volume is a walk of
/// its own, so that a memory-backed emptyDir, which is a mounted tmpfs, is measured as well; other volumes (PVC, NFS,
/// CSI, projected, …) are listed and never touched, as their file systems may not answer. Writable layers are walked
/// where PodRoots::layers finds them. For any thread, and not for two at a time.
class PodWalk {
 public:
  PodWalk(PodRoots roots, PodName pod) : roots_(std::move(roots)), pod_(std::move(pod)) {}

  /// Goes on where it was until all is walked or the budget ends; whether all is. Blocks.
  [[nodiscard]] bool go_on(WalkBudget& budget);
  /// As far as it was seen: of what was not come to, the directories alone.
  [[nodiscard]] PodDiskReading reading() const;

 private:
  enum class Kind : std::uint8_t { log, volume, layer, files };
  /// A walk of its own.
  struct Part {
    Kind kind;
    std::string name;  // of the container or volume; a layer's is its container's id
    std::shared_ptr<const os::Directory> parent;
    std::string directory;  // in `parent`
  };

  void begin();
  void find_logs();
  void find_volumes();
  void find_layers();
  void add_file(const os::Directory& parent, const std::string& name);
  std::optional<os::Directory> open(const os::Directory& parent, std::string_view name);
  std::vector<std::string> subdirectories(const os::Directory& directory);
  void failed_unless_gone(const os::FileError& error);
  void failed(Error error);
  static void add(PodDiskReading& reading, const Part& part, const TreeUsage& usage);

  PodRoots roots_;
  PodName pod_;
  PodDiskReading reading_;
  bool begun_ = false;
  std::vector<Part> parts_;       // that are still to be walked, the next one last
  std::optional<TreeWalk> walk_;  // of the last of them
};

/// One that ends with its budget. Blocks the calling thread, any thread.
[[nodiscard]] PodDiskReading measure_pod_directories(const PodRoots& roots, const PodName& pod, WalkBudget& budget);

}  // namespace evictd::node
