#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "small_disk.hpp"
#include "testbed/agent.hpp"
#include "testbed/wait.hpp"

// What tests of small disks look at.

namespace integration {

struct Layers {
  std::int64_t bytes = 0;
  std::int64_t inodes = 0;
};

/// All writable layers, or that of one container, as the runtime has measured them so far: what it has not measured
/// counts as nothing.
inline Layers layers(testbed::Testbed& testbed, std::string_view of = {}) {
  Layers sum;
  const auto stats =
      testbed.cri().calls().ask<runtime::v1::ListContainerStatsResponse>(runtime::v1::ListContainerStatsRequest{});
  for (const auto& container : stats.stats()) {
    if (!of.empty() && container.attributes().id() != of) continue;
    sum.bytes += static_cast<std::int64_t>(container.writable_layer().used_bytes().value());
    sum.inodes += static_cast<std::int64_t>(container.writable_layer().inodes_used().value());
  }
  return sum;
}

inline bool has_image(testbed::Testbed& testbed, std::string_view name) {
  const auto images = testbed.cri().images();
  return std::ranges::any_of(
      images, [&](const auto& image) { return std::ranges::find(image.repo_tags(), name) != image.repo_tags().end(); });
}

/// Takes from the disk until so much is left.
inline void leave(const SmallDisk& disk, std::int64_t bytes) { disk.fill(disk.available() - bytes); }

/// The names of the pods that were chosen, in order.
inline std::vector<std::string> evicted(testbed::Agent& agent) {
  std::vector<std::string> names;
  for (const auto& event : agent.events().all())
    if (event.kind() == testbed::Event::EVICTION_INTENDED) names.push_back(event.pod().name());
  return names;
}

/// Until it has looked at the node so often: what it would do, it has done by then.
inline void wait_for_passes(const testbed::Agent& agent, std::uint64_t count) {
  const auto passes = agent.status().passes();
  testbed::wait_until("some passes later", std::chrono::seconds{60},
                      [&] { return agent.status().passes() > passes + count; });
}

}  // namespace integration
