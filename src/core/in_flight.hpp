#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/duration.hpp"
#include "core/event.hpp"
#include "core/eviction.hpp"
#include "core/filesystem_layout.hpp"
#include "core/observation.hpp"
#include "core/pod.hpp"
#include "core/pressure.hpp"
#include "core/ranked_pod.hpp"
#include "core/signal.hpp"
#include "core/threshold.hpp"

namespace evictd::core {

/// Evictions that were decided and whose resources are still coming back. Their bytes count as available already, so
/// that no other pod is evicted for them; what is short beyond them takes the next pod at once.
class InFlight {
 public:
  enum class State : std::uint8_t {
    releasing,
    released,  // gone, but the list of pods may still name it
    stuck,     // its cleanup timed out
  };
  struct Entry {
    std::string uid;
    EvictionCause cause;
    Duration grace_period{};  ///< zero once it is dead
    std::int64_t remaining = 0;
    bool known = true;  ///< false: the pod had no stats, so what comes back is anyone's guess
    /// What else comes back with it, as far as it was measured: by signal, memory by MemoryAvailable. Not saved.
    std::map<Signal, std::int64_t> also{};
    std::optional<DiskRelease> disk{};  ///< the largest of those of disks that it does not go for; not saved
    State state = State::releasing;
    bool held = false;                     ///< it has time to end; a restart ends that
    bool lives = false;                    ///< it is stuck since nothing could be killed, or runs again; not saved
    bool only_reported = false;            ///< nothing was done to the pod (ActingChanged); not saved
    std::optional<Instant> named_since{};  ///< of a released one: since when lists of pods have named it all the same

    friend bool operator==(const Entry&, const Entry&) = default;
  };

  InFlight() = default;
  /// `counts` false: nothing does, as in the kubelet, which waits for the cleanup instead. `acts` false: what is
  /// decided is only reported (ActingChanged).
  explicit InFlight(bool counts, bool acts = true) : counts_{counts}, acts_{acts} {}

  /// What a restart would have to learn anew.
  [[nodiscard]] std::vector<Entry> to_save() const;
  void restore(std::vector<Entry> entries) {
    if (counts_) entries_ = std::move(entries);
  }

  void add(const Eviction& evict) { add(evict, !acts_); }
  /// What displaces a pod is done, and told of then alone.
  void displaced(const Eviction& evict) { add(evict, false); }
  /// What victims still hold of memory and process ids, whatever they go for; before the kill what they go for alone.
  void update(std::span<const Releasing> releasing);
  /// What a pod was measured to hold of a disk, by its signal, and what the node had of that. It counts where the pod
  /// goes for something else.
  void measured(Signal disk, const Observation& node, const RankedPod& pod);
  /// The largest amount that was measured so of a pod; absent: none.
  [[nodiscard]] std::optional<DiskRelease> disk_release(std::string_view uid) const;
  void hold(const PodHeld& held);
  void end(const CleanupEnded& ended);
  void change(const ActingChanged& change);
  /// Forgets a pod that has gone and been started again. One whose eviction is under way or timed out stays; the latter
  /// may go for a limit of its own again.
  void returned(std::string_view uid);
  /// Forgets pods that are no longer on the node, and those that have gone but have been listed for a minute since.
  void retain(const PodList& pods, Instant now);

  /// Whether the threshold is still short once everything on its way back has come. While what comes is unknown (a pod
  /// without stats, or, where disk is short, one that goes for another disk signal, or for a limit of its own since
  /// before a restart), it is not. A pod that was given time to stop does not count for a hard threshold until it is
  /// dead, since its memory may come too late, and nowhere for what it was not chosen for.
  [[nodiscard]] bool leaves_short(const ActingThreshold& acting, const Observation& observation,
                                  FilesystemLayout layout) const;

  /// Whether any one victim will give back so much of what this threshold wants, as far as is known.
  [[nodiscard]] bool brings(std::int64_t amount, const Threshold& threshold, FilesystemLayout layout) const;

  /// Whether the pod may be chosen: not when it is already going at least as fast as this threshold would have it. One
  /// that is held can take no more memory, but anything else.
  [[nodiscard]] bool may_choose(const Pod& pod, const Threshold& threshold) const;
  /// The same for a limit of the pod's own. One that is stuck is not chosen: what it wrote is still there, and would
  /// have it go in every pass.
  [[nodiscard]] bool may_choose(const Pod& pod) const;
  /// Whether the pod is going already, and this threshold would have it go faster.
  [[nodiscard]] bool may_hurry(const Pod& pod, const Threshold& threshold) const;
  /// Whether an earlier eviction of this pod timed out: others go first.
  [[nodiscard]] bool is_stuck(const Pod& pod) const;

 private:
  void add(const Eviction& evict, bool only_reported);
  /// Of several the last: what holds for the pod by now.
  [[nodiscard]] const Entry* find(std::string_view uid) const;

  bool counts_ = true;
  bool acts_ = true;
  std::vector<Entry> entries_;
};

}  // namespace evictd::core
