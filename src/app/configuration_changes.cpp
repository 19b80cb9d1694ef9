#include "app/configuration_changes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>

namespace evictd::app {
namespace {

/// The runtime in use follows it at once, or not at all (app/place_watch.hpp).
constexpr std::string_view runtime_key = "containerRuntimeEndpoint";

}  // namespace

std::string ConfigurationChanges::message() const {
  return fmt::format("the configuration changed: {}{}", fmt::join(lines, "; "),
                     needs_restart ? "; all but log.level takes effect when evictd restarts" : "");
}

ConfigurationChanges changes_between(const config::AgentConfiguration& agent_before,
                                     const config::AgentConfiguration& agent_after,
                                     const config::KubeletConfiguration& kubelet_before,
                                     const config::KubeletConfiguration& kubelet_after) {
  ConfigurationChanges changes;
  const auto before = config::describe(agent_before);
  const auto after = config::describe(agent_after);
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i].value == after[i].value) continue;
    changes.lines.push_back(fmt::format("{}: {} -> {}", after[i].path, before[i].value, after[i].value));
    changes.needs_restart = changes.needs_restart || after[i].path != "log.level";
  }
  for (const auto& key : config::changed_keys(kubelet_before, kubelet_after)) {
    if (key == runtime_key) continue;
    changes.lines.push_back(fmt::format("KubeletConfiguration: {}", key));
    changes.needs_restart = true;
  }
  return changes;
}

}  // namespace evictd::app
