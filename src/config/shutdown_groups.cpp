#include "config/shutdown_groups.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "core/error.hpp"

namespace evictd::config {

Result<core::ShutdownGroups> shutdown_groups(const KubeletConfiguration& configuration) {
  core::ShutdownSettings settings{.grace_period = configuration.shutdown_grace_period,
                                  .critical_pods = configuration.shutdown_grace_period_critical_pods};
  // What is too long is refused below; here it must fit into nanoseconds.
  constexpr std::int64_t most = 2'000'000'000;
  for (const auto& [priority, seconds] : configuration.shutdown_grace_period_by_pod_priority)
    settings.by_priority.push_back({priority, std::chrono::seconds(std::clamp<std::int64_t>(seconds, -1, most))});
  return core::make_shutdown_groups(settings);
}

}  // namespace evictd::config
