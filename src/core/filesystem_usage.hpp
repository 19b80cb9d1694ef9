#pragma once
#include <cstdint>

#include "core/filesystem_layout.hpp"
#include "core/pod.hpp"
#include "core/signal.hpp"
#include "core/usage.hpp"

namespace evictd::core {

/// Which parts of a pod's disk usage lie on the file system of a signal (kubelet: fsStatsType).
struct FilesystemParts {
  bool logs = false;
  bool local_volumes = false;
  bool writable_layers = false;

  friend bool operator==(const FilesystemParts&, const FilesystemParts&) = default;
};

[[nodiscard]] FilesystemParts parts_on(Signal signal, FilesystemLayout layout);

/// hostPath, configMap, gitRepo and emptyDir on disk: the volumes that take space of the node.
[[nodiscard]] bool is_local(const Volume& volume);

/// Bytes and inodes of the pod on these parts. Only volumes that the spec names count. (kubelet: podDiskUsage)
struct DiskTotals {
  std::int64_t bytes = 0;
  std::int64_t inodes = 0;
};
[[nodiscard]] DiskTotals disk_usage(const Pod& pod, const PodUsage& usage, FilesystemParts parts);

}  // namespace evictd::core
