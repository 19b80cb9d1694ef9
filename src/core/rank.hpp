#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/filesystem_layout.hpp"
#include "core/pod.hpp"
#include "core/signal.hpp"
#include "core/usage.hpp"

namespace evictd::core {

/// A pod's place in the ranking and the numbers that gave it.
struct RankedPod {
  PodPtr pod;
  std::int64_t usage = 0;    ///< of the signal's resource: bytes, inodes or processes
  std::int64_t request = 0;  ///< bytes; 0 for pids. For inodes the ephemeral-storage request, as the kubelet has it
  bool has_stats = true;
  bool at_most = false;  ///< the usage is a bound (core/deciding_usage.hpp)
  /// No container of it runs, and what is short is held by its bare sandbox at most (2 MiB of memory, one process): an
  /// eviction would end nothing. Never so for disks, where what dead containers wrote is still there.
  bool nothing_to_gain = false;

  friend bool operator==(const RankedPod&, const RankedPod&) = default;
};

/// The numbers by which the pod is ranked.
[[nodiscard]] RankedPod ranked(Signal signal, const PodPtr& pod, const std::optional<PodUsage>& usage,
                               FilesystemLayout layout);

/// Who goes first for this signal: below 0 `a`, above 0 `b`, 0 where nothing tells. More usage never puts a pod further
/// back.
[[nodiscard]] int compare(Signal signal, const RankedPod& a, const RankedPod& b);

/// Whether the pod uses more than it asked for. Nothing asks for process ids or inodes: there each use counts.
[[nodiscard]] bool exceeds_request(Signal signal, const RankedPod& ranked);

/// The pods in the order in which they would go for this signal, first to go first. `usage[i]` belongs to `pods[i]`.
/// The sort is stable. memory and disk: usage over request first, then lower priority, then larger usage over request;
/// pids: lower priority, then more processes (kubelet: rankMemoryPressure, rankDiskPressureFunc, rankPIDPressure).
[[nodiscard]] std::vector<RankedPod> rank(Signal signal, const PodList& pods,
                                          std::span<const std::optional<PodUsage>> usage, FilesystemLayout layout);

}  // namespace evictd::core
