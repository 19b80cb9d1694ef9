#include "agent/pod_usage.hpp"

namespace evictd::agent {
namespace {

std::optional<std::int64_t> value_or_none(const node::FileResult<std::int64_t>& reading) {
  if (reading) return *reading;
  if (reading.error().is_gone()) return 0;
  return std::nullopt;
}

}  // namespace

std::vector<std::optional<core::PodUsage>> measure_pods(const core::ReadPodUsage& request, node::PodCgroups& cgroups) {
  std::vector<std::optional<core::PodUsage>> usage;
  usage.reserve(request.pods->size());
  for (const auto& pod : *request.pods) {
    core::PodUsage measured;
    switch (request.measure) {
      case core::Measure::Memory: measured.working_set = value_or_none(cgroups.working_set(pod->uid)); break;
      case core::Measure::Processes: measured.processes = value_or_none(cgroups.process_count(pod->uid)); break;
      case core::Measure::Disk:
      case core::Measure::LocalStorageLimits: break;
    }
    const bool known = measured.working_set || measured.processes;
    usage.push_back(known ? std::optional(std::move(measured)) : std::nullopt);
  }
  return usage;
}

}  // namespace evictd::agent
