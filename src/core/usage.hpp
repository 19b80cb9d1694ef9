#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace evictd::core {

/// Bytes and inodes of one place on disk; what was not measured counts as 0 in sums.
struct DiskUsage {
  std::optional<std::int64_t> bytes{};
  std::optional<std::int64_t> inodes{};

  friend bool operator==(const DiskUsage&, const DiskUsage&) = default;
};

struct ContainerUsage {
  std::string name;
  std::optional<std::int64_t> working_set{};  ///< bytes
  DiskUsage rootfs{};                         ///< the writable layer
  DiskUsage logs{};

  friend bool operator==(const ContainerUsage&, const ContainerUsage&) = default;
};

/// What a pod was measured to use. A pod without one ("no stats") goes before those with one.
struct PodUsage {
  std::optional<std::int64_t> working_set{};  ///< bytes of memory, pod level
  bool at_most = false;  ///< the working set is no larger than that: what it is could not change who goes
  bool runs = true;      ///< false: the runtime lists no running container of it
  std::optional<std::int64_t> processes{};
  std::optional<std::int64_t>
      ephemeral{};  ///< bytes: writable layers + logs + local ephemeral volumes + pod log directory
  std::map<std::string, DiskUsage, std::less<>> volumes{};
  std::vector<ContainerUsage> containers{};

  friend bool operator==(const PodUsage&, const PodUsage&) = default;
};

}  // namespace evictd::core
