#pragma once
#include <vector>

#include "config/agent_configuration.hpp"
#include "node/node_disk.hpp"
#include "node/node_memory.hpp"
#include "node/node_pids.hpp"
#include "wake/gauge.hpp"

namespace evictd::wake {

class MemcgThreshold;

/// The kernel's thresholds on memory, where there are any.
struct KernelThresholds {
  const MemcgThreshold* node = nullptr;
  const MemcgThreshold* pods = nullptr;
};

/// A gauge for every signal; none where `notifier.disable` has the sampler. The memory gauges sleep for as long as the
/// kernel's thresholds guard them. Everything given must outlive the gauges. Measures how fast memory can be taken,
/// which takes some milliseconds.
[[nodiscard]] std::vector<Gauge> make_gauges(const config::NotifierSettings& settings, const node::NodeMemory& memory,
                                             node::NodeDisk& disk, const node::NodePids& pids,
                                             const KernelThresholds& kernel);

}  // namespace evictd::wake
