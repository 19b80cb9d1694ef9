#include "core/eviction_order.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/filesystem_usage.hpp"
#include "core/pod_resources.hpp"

namespace evictd::core {
namespace {

std::string_view requested_resource(RankBy by) {
  // Nothing requests inodes; the kubelet subtracts the ephemeral-storage request from the inode count all the same.
  return by == RankBy::Memory ? "memory" : "ephemeral-storage";
}

std::int64_t usage_of(Signal signal, const Pod& pod, const PodUsage& usage, FilesystemLayout layout) {
  switch (rank_by(signal)) {
    case RankBy::Memory: return usage.working_set.value_or(0);
    case RankBy::Processes: return usage.processes.value_or(0);
    case RankBy::EphemeralStorage: return disk_usage(pod, usage, parts_on(signal, layout)).bytes;
    case RankBy::Inodes: return disk_usage(pod, usage, parts_on(signal, layout)).inodes;
  }
  return 0;
}

/// A sandbox without a running container: its own process, and what the kernel keeps for its cgroups.
constexpr std::int64_t bare_sandbox_memory = std::int64_t{2} << 20;
constexpr std::int64_t bare_sandbox_processes = 1;

bool has_nothing_to_gain(Signal signal, const PodUsage& usage) {
  if (usage.runs) return false;
  switch (rank_by(signal)) {
    case RankBy::Memory: return usage.working_set && *usage.working_set <= bare_sandbox_memory;
    case RankBy::Processes: return usage.processes && *usage.processes <= bare_sandbox_processes;
    default: return false;
  }
}

std::int32_t priority(const RankedPod& ranked) { return ranked.pod->priority.value_or(0); }

bool exceeds(const RankedPod& ranked, RankBy by) { return ranked.usage > (by == RankBy::Inodes ? 0 : ranked.request); }

/// -1: a goes first, 1: b goes first, 0: this number does not tell.
int compare_pids(const RankedPod& a, const RankedPod& b) {
  if (priority(a) != priority(b)) return priority(a) < priority(b) ? -1 : 1;
  if (a.has_stats != b.has_stats) return a.has_stats ? 1 : -1;
  if (a.usage != b.usage) return a.usage > b.usage ? -1 : 1;
  return 0;
}

int compare_against_request(const RankedPod& a, const RankedPod& b, RankBy by) {
  if (a.has_stats != b.has_stats) return a.has_stats ? 1 : -1;
  if (a.has_stats && exceeds(a, by) != exceeds(b, by)) return exceeds(a, by) ? -1 : 1;
  if (priority(a) != priority(b)) return priority(a) < priority(b) ? -1 : 1;
  const auto over_a = a.usage - a.request;
  const auto over_b = b.usage - b.request;
  if (a.has_stats && over_a != over_b) return over_a > over_b ? -1 : 1;
  return 0;
}

}  // namespace

RankedPod ranked(Signal signal, const PodPtr& pod, const std::optional<PodUsage>& usage, FilesystemLayout layout) {
  const auto by = rank_by(signal);
  RankedPod result{.pod = pod, .has_stats = usage.has_value(), .at_most = usage && usage->at_most};
  if (usage) result.usage = usage_of(signal, *pod, *usage, layout);
  result.nothing_to_gain = usage && has_nothing_to_gain(signal, *usage);
  // A negative one, which no API server takes, would put the pod before those that use more.
  if (by != RankBy::Processes)
    result.request = std::max<std::int64_t>(0, pod_request(*pod, requested_resource(by)).value());
  return result;
}

bool exceeds_request(Signal signal, const RankedPod& ranked) { return exceeds(ranked, rank_by(signal)); }

int compare(Signal signal, const RankedPod& a, const RankedPod& b) {
  const auto by = rank_by(signal);
  return by == RankBy::Processes ? compare_pids(a, b) : compare_against_request(a, b, by);
}

std::vector<RankedPod> rank(Signal signal, const PodList& pods, std::span<const std::optional<PodUsage>> usage,
                            FilesystemLayout layout) {
  const std::optional<PodUsage> no_stats;
  std::vector<RankedPod> ranking;
  ranking.reserve(pods.size());
  for (std::size_t i = 0; i < pods.size(); ++i)
    ranking.push_back(ranked(signal, pods[i], i < usage.size() ? usage[i] : no_stats, layout));
  std::ranges::stable_sort(ranking, [&](const RankedPod& a, const RankedPod& b) { return compare(signal, a, b) < 0; });
  return ranking;
}

void settle_ties(std::vector<RankedPod>& ranking, const BackOff& back_off, Signal signal, Instant now) {
  if (back_off.state().empty()) return;
  const auto ties = [&](const RankedPod& a, const RankedPod& b) {
    return !a.at_most && !b.at_most && compare(signal, a, b) == 0;
  };
  for (auto first = ranking.begin(); first != ranking.end();) {
    const auto last = std::find_if_not(first + 1, ranking.end(), [&](const RankedPod& b) { return ties(*first, b); });
    if (last - first > 1)
      std::stable_partition(first, last, [&](const RankedPod& ranked) { return !back_off.holds(ranked, signal, now); });
    first = last;
  }
}

bool may_go(const RankedPod& ranked) { return !is_critical(*ranked.pod) && !ranked.nothing_to_gain; }

void leave_out_gone(std::vector<RankedPod>& ranking, const PodList& on_node) {
  std::set<std::string_view> here;
  for (const auto& pod : on_node) here.insert(pod->uid);
  std::erase_if(ranking, [&](const RankedPod& ranked) { return !here.contains(ranked.pod->uid); });
}

void leave_out(std::vector<RankedPod>& ranking, const PodList& pods, const std::vector<bool>& marked) {
  std::set<std::string_view> left_out;
  for (std::size_t i = 0; i < pods.size() && i < marked.size(); ++i)
    if (marked[i]) left_out.insert(pods[i]->uid);
  std::erase_if(ranking, [&](const RankedPod& ranked) { return left_out.contains(ranked.pod->uid); });
}

Eligibility EvictionOrder::eligibility(const Pod& pod, const Threshold& threshold) const {
  return is_critical(pod) ? Eligibility::excluded : place(pod, threshold);
}

Eligibility EvictionOrder::place(const Pod& pod, const Threshold& threshold) const {
  if (!known_.in_flight.may_choose(pod, threshold)) return Eligibility::excluded;
  if (known_.in_flight.is_stuck(pod)) return Eligibility::last;
  if (!known_.unlisted.contains(pod.uid)) return Eligibility::candidate;
  return is_disk(threshold.signal) ? Eligibility::excluded : Eligibility::unlisted;
}

std::vector<RankedPod> EvictionOrder::ranking(const Threshold& threshold, const PodList& pods,
                                              std::span<const std::optional<PodUsage>> usage, Instant now) const {
  auto ranking = rank(threshold.signal, pods, usage, known_.layout);
  std::erase_if(ranking, [&](const RankedPod& r) { return place(*r.pod, threshold) == Eligibility::excluded; });
  settle_ties(ranking, known_.back_off, threshold.signal, now);
  std::ranges::stable_partition(ranking, [&](const RankedPod& r) {
    return place(*r.pod, threshold) != Eligibility::last || is_critical(*r.pod);
  });
  return ranking;
}

void EvictionOrder::prefer_listed(std::vector<RankedPod>& ranking, const Acted& acted) const {
  const auto& [threshold, observation] = acted;
  const auto first = std::ranges::find_if(ranking, may_go);
  if (first == ranking.end() || !known_.unlisted.contains(first->pod->uid)) return;
  const auto deficit = required(threshold, observation.capacity, Enforce::min_reclaim) -
                       std::max<std::int64_t>(0, observation.available);
  const auto enough = std::max(deficit, first->usage / 2);
  const auto instead = std::find_if(first + 1, ranking.end(), [&](const RankedPod& r) {
    return eligibility(*r.pod, threshold) == Eligibility::candidate && r.has_stats && !r.at_most && r.usage >= enough &&
           exceeds_request(threshold.signal, r);
  });
  if (instead != ranking.end()) std::rotate(first, instead, instead + 1);
}

}  // namespace evictd::core
