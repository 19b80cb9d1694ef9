#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

namespace evictd::core {

// Which process the kernel's OOM killer takes: that of the highest score, its share of the memory in thousandths plus
// its oom_score_adj (mm/oom_kill.c, oom_badness). What is raised here makes that order evictd's.

/// The kubelet's classes: a Burstable container has 2 to 999, a BestEffort one 1000, and stays what it is.
inline constexpr int most_burstable_adj = 999;
inline constexpr int most_adj = 1000;

/// Thousandths between one pod and the next: shares move between two looks, and the kernel counts page tables, too.
inline constexpr int steering_gap = 5;

/// So many pods are raised at a time: each costs a look at its processes.
inline constexpr std::size_t most_steered_pods = 8;

struct OomProcess {
  std::int64_t bytes = 0;  ///< that it holds
  int adj = 0;             ///< its own oom_score_adj, before anything was raised
};

/// A pod whose processes may be raised.
struct OomPod {
  int most = most_burstable_adj;  ///< none of its processes is raised beyond
  std::vector<OomProcess> processes{};
  std::set<int> taken{};  ///< the pod is raised to none of these, but to the next lower value
};

/// A process of a share of so many thousandths of `memory`, rounded down.
[[nodiscard]] int oom_share(std::int64_t bytes, std::int64_t memory);

/// What a process has after its pod was raised to `raised`: never less than it had, and one below 0, which somebody
/// protects (the kubelet its critical pods, the runtime its sandboxes), is left alone.
[[nodiscard]] int raised_adj(int own, std::optional<int> raised, int most);

/// To what each pod is raised so that the kernel takes them in this order, before whoever has a score of `behind` at
/// most; absent: it is left as it is. Where `most` does not allow that they come as near to it as they can, and none is
/// raised past one that goes before it. `memory`: bytes, > 0: what the kernel takes shares of.
[[nodiscard]] std::vector<std::optional<int>> steer(std::span<const OomPod> pods, int behind, std::int64_t memory);

}  // namespace evictd::core
