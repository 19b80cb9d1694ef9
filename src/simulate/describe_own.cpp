#include "simulate/describe_own.hpp"

#include <boost/json.hpp>
#include <string>
#include <vector>

#include "core/eviction_reason.hpp"
#include "core/oom_order.hpp"
#include "core/oom_steering.hpp"
#include "core/qos.hpp"
#include "core/quantity.hpp"
#include "core/signal.hpp"

namespace json = boost::json;

namespace evictd::simulate {
namespace {

std::string quantity(std::int64_t bytes) { return core::Quantity::bytes(bytes).to_string(); }
json::value quantity(const std::optional<std::int64_t>& bytes) {
  return bytes ? json::value(quantity(*bytes)) : json::value();
}

}  // namespace

json::array describe_steering(const core::Synchronizer& policy, std::span<const std::optional<core::PodUsage>> usage,
                              const std::map<std::string, int, std::less<>>& chosen, std::int64_t capacity,
                              core::Instant now) {
  const auto ranking = policy.ranking(core::Signal::MemoryAvailable, *policy.pods(), usage, now);
  const auto order = core::oom_order(ranking, core::most_steered_pods, capacity, [](const core::Pod&) { return true; });
  std::vector<core::OomPod> pods;
  for (const auto place : order.raised) {
    const auto& ranked = ranking[place].ranked;
    const auto found = chosen.find(ranked.pod->key());
    const auto own = found != chosen.end() ? found->second
                                           : core::oom_score_adj(*ranked.pod, ranked.pod->containers.front(), capacity);
    pods.push_back({.most = core::most_raised(*ranked.pod), .processes = {{.bytes = ranked.usage, .adj = own}}});
  }
  const auto raised = core::steer(pods, order.behind, capacity);
  json::array result;
  for (std::size_t i = 0; i < pods.size(); ++i)
    result.push_back(json::object{{"pod", ranking[order.raised[i]].ranked.pod->key()},
                                  {"adj", core::raised_adj(pods[i].processes.front().adj, raised[i], pods[i].most)}});
  return result;
}

json::object describe_trim(const core::Synchronizer& policy, const core::TrimGoal& goal,
                           std::span<const std::optional<core::PodUsage>> usage, core::Instant now) {
  json::array pods;
  for (const auto& ranked : core::trimmed_pods(policy, goal.threshold.signal, usage, now))
    pods.emplace_back(ranked.pod->key());
  return {{"signal", core::name(goal.threshold.signal)}, {"wanted", quantity(goal.wanted)}, {"pods", std::move(pods)}};
}

json::value describe_reason(const core::Eviction& eviction) {
  const auto reason = core::reason_for(eviction);
  if (!reason || !core::is_memory(eviction.acted->threshold.signal)) return nullptr;
  json::object result{{"before", nullptr},
                      {"rule", core::name(reason->rule)},
                      {"savingRequest", reason->next_is_enough ? quantity(reason->request) : json::value()},
                      {"savingLimit", quantity(reason->limit)},
                      {"savingThreshold", quantity(reason->threshold)}};
  if (reason->next != nullptr) result["before"] = reason->next->pod->key();
  return result;
}

}  // namespace evictd::simulate
