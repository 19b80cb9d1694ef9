#include "app/configuration_changes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace evictd::app {
namespace {

/// The runtime in use follows it at once, or not at all (app/place_watch.hpp).
constexpr std::string_view runtime_key = "containerRuntimeEndpoint";

}  // namespace

std::string ConfigurationChanges::message() const {
  return fmt::format("the configuration changed: {}{}", fmt::join(lines, "; "),
                     needs_restart ? "; all but log.level takes effect when evictd restarts" : "");
}

ConfigurationChanges changes_between(const WrittenSettings& before, const WrittenSettings& after,
                                     const WrittenSettings& start) {
  ConfigurationChanges changes;
  const auto add = [&](std::string line, bool needs_restart) {
    changes.lines.push_back(std::move(line));
    changes.needs_restart = changes.needs_restart || needs_restart;
  };
  const auto was = config::describe(before.agent);
  const auto is = config::describe(after.agent);
  const auto in_force = config::describe(start.agent);
  for (std::size_t i = 0; i < is.size(); ++i)
    if (was[i].value != is[i].value)
      add(fmt::format("{}: {} -> {}", is[i].path, was[i].value, is[i].value),
          is[i].path != "log.level" && is[i].value != in_force[i].value);
  const auto not_in_force = config::changed_keys(start.kubelet, after.kubelet);
  for (const auto& key : config::changed_keys(before.kubelet, after.kubelet))
    if (key != runtime_key)
      add(fmt::format("KubeletConfiguration: {}", key), std::ranges::find(not_in_force, key) != not_in_force.end());
  return changes;
}

}  // namespace evictd::app
