#include "core/rank.hpp"

#include <algorithm>
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
  if (by != RankBy::Processes) result.request = pod_request(*pod, requested_resource(by)).value();
  return result;
}

bool exceeds_request(Signal signal, const RankedPod& ranked) { return exceeds(ranked, rank_by(signal)); }

int compare(Signal signal, const RankedPod& a, const RankedPod& b) {
  const auto by = rank_by(signal);
  return by == RankBy::Processes ? compare_pids(a, b) : compare_against_request(a, b, by);
}

std::vector<RankedPod> rank(Signal signal, const PodList& pods, std::span<const std::optional<PodUsage>> usage,
                            FilesystemLayout layout) {
  std::vector<RankedPod> ranking;
  ranking.reserve(pods.size());
  for (std::size_t i = 0; i < pods.size(); ++i)
    ranking.push_back(ranked(signal, pods[i], i < usage.size() ? usage[i] : std::nullopt, layout));
  std::ranges::stable_sort(ranking, [&](const RankedPod& a, const RankedPod& b) { return compare(signal, a, b) < 0; });
  return ranking;
}

}  // namespace evictd::core
