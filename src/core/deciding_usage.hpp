#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/eligibility.hpp"
#include "core/pod.hpp"
#include "core/usage.hpp"

namespace evictd::core {

/// Where the memory that pods use can be read, pod by pod. Places are those of the list of pods; a reading that is
/// absent means no stats.
class MemoryReadings {
 public:
  /// Every place once, in the order in which to look: the largest, as far as is known, comes first.
  [[nodiscard]] virtual std::span<const std::size_t> order() const = 0;
  /// That many of the order are read in any case: nothing is known of them, or held_together() does not count them.
  [[nodiscard]] virtual std::size_t always() const = 0;
  /// What the pod's cgroup holds, bytes: its working set cannot exceed that.
  [[nodiscard]] virtual std::optional<std::int64_t> held(std::size_t place) const = 0;
  /// What it holds less what the kernel takes back first, bytes. Costs more than held().
  [[nodiscard]] virtual std::optional<std::int64_t> working_set(std::size_t place) const = 0;
  /// No less than what all pods behind the first always() hold together, bytes; absent: unknown.
  [[nodiscard]] virtual std::optional<std::int64_t> held_together() const = 0;
  /// PodUsage::runs
  [[nodiscard]] virtual bool runs(std::size_t place) const = 0;

 protected:
  ~MemoryReadings() = default;
};

/// Reads just the pods that decide which candidate for a memory eviction goes first.
///
/// A larger number never puts a pod further back. So once the first by the known bounds is one that was read exactly,
/// no other can come before it; and no pod that was not read at all holds more than all of them together. So pods are
/// read, 64 at a time, until what is left cannot come first. What was not read keeps its bound, marked as such: behind
/// the first, the order is by bounds.
///
/// A pod that has nothing to give (RankedPod::nothing_to_gain) decides nothing.
///
/// `eligibilities`: one for each pod. Working sets of those that are excluded are not read, those that go last count
/// only if there is no other. Those of unlisted pods are always read, and beside them those of the candidates among the
/// 16 pods that are looked at first, of which one may go instead.
[[nodiscard]] std::vector<std::optional<PodUsage>> read_deciding_usage(const PodList& pods,
                                                                       std::span<const Eligibility> eligibilities,
                                                                       const MemoryReadings& readings);

/// The same for those who want to see the order itself: the pods that are among the first `count` are read exactly, and
/// bounds are what comes after them. Every pod's cgroup is read.
[[nodiscard]] std::vector<std::optional<PodUsage>> read_leading_usage(const PodList& pods,
                                                                      std::span<const Eligibility> eligibilities,
                                                                      const MemoryReadings& readings,
                                                                      std::size_t count);

}  // namespace evictd::core
