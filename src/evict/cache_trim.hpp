#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/pod.hpp"
#include "node/cgroup.hpp"
#include "os/directory.hpp"

namespace evictd::evict {

/// A pod whose file cache may be taken. Its cgroup is held open, so that another one that is made by the same name
/// later is not meant.
struct TrimTarget {
  core::PodPtr pod;
  os::Directory cgroup;
  std::int64_t request = 0;  ///< bytes of memory: below that nothing is taken
};

/// What is to be taken from whom. It owns all that the work touches, which may outlive the one who asked for it.
struct TrimPlan {
  node::CgroupVersion version = node::CgroupVersion::v2;
  std::string proc = "/proc";      ///< to see whether there is swap
  std::vector<TrimTarget> pods{};  ///< the first is trimmed first
  std::int64_t wanted = 0;         ///< bytes; once so much is gained, it ends
};

/// What came of one pod.
struct TrimmedPod {
  core::PodPtr pod;
  std::int64_t bytes = 0;  ///< by which its working set fell: file cache that is inactive counts as available already
  std::string ended_by;    ///< why no more was taken, for people

  friend bool operator==(const TrimmedPod&, const TrimmedPod&) = default;
};

enum class TrimEnd : std::uint8_t {
  Enough,     ///< what was wanted
  NoneLeft,   ///< of all pods
  Time,       ///< the limit of all
  Stopped,    ///< pods are evicted now, or evictd ends
  Impossible  ///< the kernel offers no way; `errors` says why
};
/// "enough", "nothing left", "time", "stopped", "impossible"
[[nodiscard]] std::string_view name(TrimEnd end);

struct TrimResult {
  std::vector<TrimmedPod> pods{};  ///< that were tried, in their order
  std::int64_t bytes = 0;          ///< of all
  core::Duration duration{};
  TrimEnd end = TrimEnd::NoneLeft;
  std::vector<Error> errors{};
};

struct TrimLimits {
  core::Duration all = std::chrono::seconds(2);
  /// Of one write: what is written to holds up the removal of its cgroup, and with that all work on cgroups.
  core::Duration write = std::chrono::milliseconds(50);
  std::int64_t amount = 16 << 20;  ///< bytes asked for in one write
  /// On v1 an amount cannot be asked for: a write goes on until it is broken off. 11 MiB went in a millisecond (2
  /// cores, kernel 6.18).
  core::Duration write_v1 = std::chrono::milliseconds(2);
  std::int64_t margin_v1 = 32 << 20;  ///< so much above its request a pod is left alone: a write may take as much
};

/// By which it reads the clock and writes; a test has others.
class TrimTools {
 public:
  TrimTools() = default;
  TrimTools(const TrimTools&) = delete;
  TrimTools& operator=(const TrimTools&) = delete;
  virtual ~TrimTools() = default;

  [[nodiscard]] virtual core::Instant now() const;
  /// As os::write_within().
  [[nodiscard]] virtual int write(int descriptor, std::string_view text, core::Duration patience);
};

/// Has the kernel take file cache from the pods, one after the other. Of each it takes a little at a time, and goes on
/// to the next where two writes came to nothing, where the pod reads back what was taken, and at its request.
///
/// v2: memory.reclaim (Linux 5.19), with swappiness=0 (6.9) so that nothing is swapped; where there is swap and no such
/// word it does nothing. v1: memory.force_empty, which is all or nothing, broken off after moments; not where there is
/// swap, for it would swap. Neither leaves anything behind that would have to be undone. A write can hang in the
/// kernel: this is for a thread of its own. It ends soon after `stopped` is set.
[[nodiscard]] TrimResult trim_cache(const TrimPlan& plan, const std::atomic<bool>& stopped, const TrimLimits& limits,
                                    TrimTools& tools);

}  // namespace evictd::evict
