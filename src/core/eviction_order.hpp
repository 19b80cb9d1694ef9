#pragma once
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/action.hpp"
#include "core/back_off.hpp"
#include "core/duration.hpp"
#include "core/eligibility.hpp"
#include "core/filesystem_layout.hpp"
#include "core/in_flight.hpp"
#include "core/pod.hpp"
#include "core/rank.hpp"
#include "core/threshold.hpp"
#include "core/usage.hpp"

namespace evictd::core {

/// Whether an eviction of the pod is allowed, and would give anything back.
[[nodiscard]] bool may_go(const RankedPod& ranked);

/// Removes the pods that are not on the node.
void leave_out_gone(std::vector<RankedPod>& ranking, const PodList& on_node);
/// Removes the pods that are marked: `marked[i]` belongs to `pods[i]`.
void leave_out(std::vector<RankedPod>& ranking, const PodList& pods, const std::vector<bool>& marked);

/// In which order pods go for a threshold: core/rank.hpp by their numbers, and what is known of them beside these. It
/// refers to what it is given, so it is made for one question.
class EvictionOrder {
 public:
  struct Known {
    const InFlight& in_flight;
    const BackOff& back_off;
    const std::set<std::string, std::less<>>& unlisted;  ///< by uid: pods that no list names yet
    FilesystemLayout layout{};
  };

  explicit EvictionOrder(Known known) : known_{known} {}

  /// Whether the pod may go for the threshold.
  [[nodiscard]] Eligibility eligibility(const Pod& pod, const Threshold& threshold) const;
  /// The same, but a critical pod stands where it would if it could go. Of an unlisted pod's files nothing is known, so
  /// it does not go for a disk.
  [[nodiscard]] Eligibility place(const Pod& pod, const Threshold& threshold) const;
  /// The pods that have a place, first to go first: those that go last behind all others, and critical ones where they
  /// would stand. `usage[i]` belongs to `pods[i]`.
  [[nodiscard]] std::vector<RankedPod> ranking(const Threshold& threshold, const PodList& pods,
                                               std::span<const std::optional<PodUsage>> usage, Instant now) const;
  /// Puts a listed pod before an unlisted one that would go, since that one may prove to be critical. It is the first
  /// that exceeds its request as well, ends the shortage, and holds at least half as much: one that is small beside a
  /// brand-new hog does not go for it.
  void prefer_listed(std::vector<RankedPod>& ranking, const Acted& acted) const;

 private:
  Known known_;
};

}  // namespace evictd::core
