#include "wake/gauges.hpp"

#include <functional>
#include <utility>

#include "core/signal.hpp"
#include "wake/assumed_rates.hpp"
#include "wake/fill_rate.hpp"
#include "wake/memcg_threshold.hpp"
#include "wake/poll_interval.hpp"

namespace evictd::wake {
namespace {

Gauge memory_gauge(core::Signal signal, const PollSettings& pace, const node::NodeMemory& memory,
                   const MemcgThreshold* kernel) {
  Gauge gauge{.signal = signal,
              .pace = pace,
              .available = [&memory, signal] { return memory.available(signal); },
              .at_least = [&memory, signal] { return memory.available_at_least(signal); }};
  if (kernel != nullptr) gauge.guarded = [kernel] { return kernel->guards(); };
  return gauge;
}

Gauge disk_gauge(core::Signal signal, const PollSettings& pace, node::NodeDisk& disk) {
  return {.signal = signal,
          .pace = pace,
          .available = [&disk, signal] { return disk.available(signal); },
          .look = [&disk, signal](std::function<void()> then) { disk.look(signal, std::move(then)); }};
}

}  // namespace

std::vector<Gauge> make_gauges(const config::NotifierSettings& settings, const node::NodeMemory& memory,
                               node::NodeDisk& disk, const node::NodePids& pids, const KernelThresholds& kernel) {
  using enum core::Signal;
  if (!settings.has(config::NotifierSource::Sampler)) return {};
  const auto longest = settings.fallback_interval;
  const auto memory_at = memory_pace(measure_fill_rate(), longest);
  std::vector<Gauge> gauges{memory_gauge(MemoryAvailable, memory_at, memory, kernel.node),
                            memory_gauge(AllocatableMemoryAvailable, memory_at, memory, kernel.pods)};
  for (const auto signal : {NodefsAvailable, ImagefsAvailable, ContainerfsAvailable})
    gauges.push_back(disk_gauge(signal, disk_pace(longest), disk));
  for (const auto signal : {NodefsInodesFree, ImagefsInodesFree, ContainerfsInodesFree})
    gauges.push_back(disk_gauge(signal, inode_pace(longest), disk));
  gauges.push_back(
      {.signal = PidAvailable, .pace = pid_pace(longest), .available = [&pids] { return pids.available(); }});
  return gauges;
}

}  // namespace evictd::wake
