#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "core/duration.hpp"

namespace evictd::node {

/// The directories in which containers' writable layers lie, by the ids of the containers.
///
/// containerd mounts a container's root at <state>/io.containerd.runtime.v2.task/k8s.io/ID/rootfs as an overlay of
/// which `upperdir` is the writable layer (containerd 1.6 to 2.1). The mount table of the host names both, whatever the
/// container does to its own. What other runtimes and snapshotters do is not found here. For any thread.
class LayerMounts {
 public:
  /// `proc`: node.procMount. The host's table is that of process 1; that of evictd itself comes first, as it needs no
  /// privilege.
  explicit LayerMounts(std::filesystem::path proc) : proc_{std::move(proc)} {}

  /// A path that leads there for evictd, where the container has one. Reads the tables (2 ms with 1000 mounts) where
  /// the id is new to it, at most once a second.
  [[nodiscard]] std::optional<std::filesystem::path> find(std::string_view container);

 private:
  void read(const std::filesystem::path& table, const std::filesystem::path& root);

  std::filesystem::path proc_;
  std::mutex mutex_;
  std::map<std::string, std::filesystem::path, std::less<>> layers_;  // by container id
  core::Instant read_{};
};

/// The container's id and the upper directory that a line of /proc/PID/mountinfo (proc(5)) tells of; absent of others.
struct LayerMount {
  std::string container;
  std::filesystem::path upper;
};
[[nodiscard]] std::optional<LayerMount> parse_layer_mount(std::string_view line);

}  // namespace evictd::node
