#include "core/rank.hpp"

#include <algorithm>

#include "core/filesystem_usage.hpp"
#include "core/pod_resources.hpp"

namespace evictd::core {
namespace {

std::string_view requested_resource(Resource resource) {
  // Nothing requests inodes; the kubelet subtracts the ephemeral-storage request from the inode count all the same.
  return resource == Resource::Memory ? "memory" : "ephemeral-storage";
}

std::int64_t usage_of(Signal signal, const Pod& pod, const PodUsage& usage, FilesystemLayout layout) {
  switch (resource_of(signal)) {
    case Resource::Memory: return usage.working_set.value_or(0);
    case Resource::Pids: return usage.processes.value_or(0);
    case Resource::EphemeralStorage: return disk_usage(pod, usage, parts_on(signal, layout)).bytes;
    case Resource::Inodes: return disk_usage(pod, usage, parts_on(signal, layout)).inodes;
  }
  return 0;
}

std::int32_t priority(const RankedPod& ranked) { return ranked.pod->priority.value_or(0); }

/// -1: a goes first, 1: b goes first, 0: this number does not tell.
int compare_pids(const RankedPod& a, const RankedPod& b) {
  if (priority(a) != priority(b)) return priority(a) < priority(b) ? -1 : 1;
  if (a.has_stats != b.has_stats) return a.has_stats ? 1 : -1;
  if (a.usage != b.usage) return a.usage > b.usage ? -1 : 1;
  return 0;
}

int compare_against_request(const RankedPod& a, const RankedPod& b, Resource resource) {
  if (a.has_stats != b.has_stats) return a.has_stats ? 1 : -1;
  const auto exceeds = [&](const RankedPod& ranked) {
    return ranked.usage > (resource == Resource::Inodes ? 0 : ranked.request);
  };
  if (a.has_stats && exceeds(a) != exceeds(b)) return exceeds(a) ? -1 : 1;
  if (priority(a) != priority(b)) return priority(a) < priority(b) ? -1 : 1;
  const auto over_a = a.usage - a.request;
  const auto over_b = b.usage - b.request;
  if (a.has_stats && over_a != over_b) return over_a > over_b ? -1 : 1;
  return 0;
}

}  // namespace

std::vector<RankedPod> rank(Signal signal, const PodList& pods, std::span<const std::optional<PodUsage>> usage,
                            FilesystemLayout layout) {
  const auto resource = resource_of(signal);
  std::vector<RankedPod> ranking;
  ranking.reserve(pods.size());
  for (std::size_t i = 0; i < pods.size(); ++i) {
    auto& entry = ranking.emplace_back(RankedPod{.pod = pods[i]});
    entry.has_stats = i < usage.size() && usage[i].has_value();
    if (entry.has_stats) entry.usage = usage_of(signal, *pods[i], *usage[i], layout);
    if (resource != Resource::Pids) entry.request = pod_request(*pods[i], requested_resource(resource)).value();
  }
  std::ranges::stable_sort(ranking, [&](const RankedPod& a, const RankedPod& b) {
    return (resource == Resource::Pids ? compare_pids(a, b) : compare_against_request(a, b, resource)) < 0;
  });
  return ranking;
}

}  // namespace evictd::core
