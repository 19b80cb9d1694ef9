#include "core/shutdown_plan.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "core/grace_period.hpp"
#include "core/saturating.hpp"

namespace evictd::core {
namespace {

using std::chrono::seconds;
using namespace std::chrono_literals;

constexpr seconds longest_period{1'000'000'000};  // a good 30 years, and far from the end of Duration

std::string longest_in_words() { return std::to_string(longest_period.count()) + " seconds"; }

std::unexpected<Error> wrong(std::string_view key, const std::string& what) {
  return fail(std::string(key) + ": " + what);
}

constexpr std::string_view total_key = "shutdownGracePeriod";
constexpr std::string_view critical_key = "shutdownGracePeriodCriticalPods";
constexpr std::string_view by_priority_key = "shutdownGracePeriodByPodPriority";

Result<void> check_pair(const ShutdownSettings& settings) {
  for (const auto& [key, period] :
       {std::pair{total_key, settings.grace_period}, std::pair{critical_key, settings.critical_pods}})
    if (period < 0s || (period > 0s && period < 1s))
      return wrong(key, to_string(period) + " must be either zero or at least 1s");
  if (settings.grace_period > longest_period)
    return wrong(total_key, to_string(settings.grace_period) + " must be at most " + longest_in_words());
  if (settings.critical_pods > settings.grace_period)
    return wrong(critical_key, to_string(settings.critical_pods) + " must not be more than shutdownGracePeriod, " +
                                   to_string(settings.grace_period));
  return {};
}

Result<void> check_groups(const ShutdownSettings& settings) {
  if (settings.by_priority.empty()) return {};
  if (settings.grace_period > 0s || settings.critical_pods > 0s)
    return wrong(by_priority_key, "cannot be specified together with " + std::string(total_key));
  for (const auto& group : settings.by_priority)
    if (group.grace_period < 0s || group.grace_period > longest_period)
      return wrong(by_priority_key, "the grace period of priority " + std::to_string(group.priority) +
                                        " must be from 0 to " + longest_in_words());
  if (total_grace_period(settings.by_priority) > longest_period)
    return wrong(by_priority_key, "the grace periods of all groups together must be at most " + longest_in_words());
  return {};
}

}  // namespace

Result<ShutdownGroups> make_shutdown_groups(const ShutdownSettings& settings) {
  if (const auto checked = check_pair(settings); !checked) return std::unexpected(checked.error());
  if (const auto checked = check_groups(settings); !checked) return std::unexpected(checked.error());
  auto groups = settings.by_priority;
  if (groups.empty() && settings.grace_period > 0s)
    groups = {
        {.priority = 0, .grace_period = std::chrono::floor<seconds>(settings.grace_period - settings.critical_pods)},
        {.priority = system_critical_priority, .grace_period = std::chrono::floor<seconds>(settings.critical_pods)}};
  std::ranges::stable_sort(groups, {}, &ShutdownGroup::priority);
  return groups;
}

Duration total_grace_period(const ShutdownGroups& groups) {
  Duration total{};
  for (const auto& group : groups) total = Duration{saturating_add(total.count(), group.grace_period.count())};
  return total;
}

std::size_t shutdown_group_of(const ShutdownGroups& groups, std::int32_t priority) {
  const auto not_below = std::ranges::lower_bound(groups, priority, {}, &ShutdownGroup::priority);
  const auto index = static_cast<std::size_t>(not_below - groups.begin());
  if (index == groups.size()) return index - 1;
  return index > 0 && not_below->priority > priority ? index - 1 : index;
}

Duration shutdown_grace_period(const ShutdownGroup& group, const Pod& pod) {
  return std::min(group.grace_period, grace_period_of(pod));
}

std::vector<ShutdownStage> plan_shutdown(const ShutdownGroups& groups, const PodList& pods) {
  if (groups.empty()) return {};
  std::vector<ShutdownStage> stages(groups.size());
  for (std::size_t index = 0; index < groups.size(); ++index) stages[index].group = index;
  for (const auto& pod : pods) stages[shutdown_group_of(groups, pod->priority.value_or(0))].pods.push_back(pod);
  std::erase_if(stages, [](const ShutdownStage& stage) { return stage.pods.empty(); });
  return stages;
}

}  // namespace evictd::core
