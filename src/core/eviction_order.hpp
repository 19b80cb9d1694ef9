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
#include "core/ranked_pod.hpp"
#include "core/signal.hpp"
#include "core/threshold.hpp"
#include "core/usage.hpp"

namespace evictd::core {

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

/// Decides ties in the ranking of rank(): pods that are held (core/back_off.hpp) go behind their equals. It never moves
/// a pod past one that the ranking tells apart from it, so it neither shields a pod that exceeds its request nor one of
/// another priority. A usage that is only a bound ties with none.
void settle_ties(std::vector<RankedPod>& ranking, const BackOff& back_off, Signal signal, Instant now);

/// Whether an eviction of the pod is allowed, and would give anything back.
[[nodiscard]] bool may_go(const RankedPod& ranked);

/// Removes the pods that are not on the node.
void leave_out_gone(std::vector<RankedPod>& ranking, const PodList& on_node);
/// Removes the pods that are marked: `marked[i]` belongs to `pods[i]`.
void leave_out(std::vector<RankedPod>& ranking, const PodList& pods, const std::vector<bool>& marked);

/// In which order pods go for a threshold: rank() by their numbers, and what is known of them beside these. It refers
/// to what it is given, so it is made for one question.
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
