#pragma once
#include <cstdint>

#include "core/pod.hpp"

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

}  // namespace evictd::core
