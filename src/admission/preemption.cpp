#include "admission/preemption.hpp"

#include <array>
#include <initializer_list>
#include <string_view>

#include "core/pod_resources.hpp"
#include "core/qos.hpp"

namespace evictd::admission {
namespace {

using core::PodList;

std::int64_t freed_by(const core::Pod& pod, std::string_view resource) {
  if (resource == "pods") return 1;
  const auto request = core::pod_request(pod, resource);
  return resource == "cpu" ? request.milli_value() : request.value();
}

/// What is still missing once the pods have gone.
Requirements without(const Requirements& requirements, std::initializer_list<const PodList*> gone) {
  Requirements rest;
  for (auto [resource, quantity] : requirements) {
    for (const auto* pods : gone)
      for (const auto& pod : *pods)
        if (quantity > 0) quantity -= freed_by(*pod, resource);
    if (quantity > 0) rest.push_back({.resource = resource, .quantity = quantity});
  }
  return rest;
}

/// How far the pod is from freeing all by itself: 0 if it does, and every requirement weighs the same.
double distance(const Requirements& requirements, const core::Pod& pod) {
  double sum = 0;
  for (const auto& [resource, quantity] : requirements) {
    const auto missing = static_cast<double>(quantity - freed_by(pod, resource));
    if (missing <= 0) continue;
    const double share = missing / static_cast<double>(quantity);
    sum += share * share;
  }
  return sum;
}

/// Also of two that ask for the same, so that the later one of them goes.
bool asks_for_no_more(const core::Pod& a, const core::Pod& b) {
  for (const std::string_view resource : {"memory", "cpu"}) {
    const auto of_a = freed_by(a, resource);
    const auto of_b = freed_by(b, resource);
    if (of_a != of_b) return of_a < of_b;
  }
  return true;
}

std::size_t closest(const PodList& pods, const Requirements& requirements) {
  std::size_t best = 0;
  double best_distance = static_cast<double>(requirements.size()) + 1;  // farther than any pod is
  for (std::size_t i = 0; i < pods.size(); ++i) {
    const auto own = distance(requirements, *pods[i]);
    if (own > best_distance || (own == best_distance && !asks_for_no_more(*pods[i], *pods[best]))) continue;
    best_distance = own;
    best = i;
  }
  return best;
}

Error not_enough(const Requirements& requirements) {
  std::string text = "no set of running pods found to reclaim resources: [";
  for (const auto& [resource, quantity] : requirements)
    text.append("(res: ").append(resource).append(", q: ").append(std::to_string(quantity)).append("), ");
  return {text + "]"};
}

/// Who of one class goes, in this order.
Result<PodList> chosen_from(PodList pods, Requirements requirements) {
  PodList chosen;
  while (!requirements.empty()) {
    if (pods.empty()) return std::unexpected(not_enough(requirements));
    const auto best = closest(pods, requirements);
    const PodList next{pods[best]};
    requirements = without(requirements, {&next});
    chosen.push_back(pods[best]);
    pods[best] = pods.back();
    pods.pop_back();
  }
  return chosen;
}

}  // namespace

bool may_preempt(const core::Pod& preemptor, const core::Pod& pod) {
  if (core::is_critical(preemptor) && !core::is_critical(pod)) return true;
  return preemptor.priority && pod.priority && *preemptor.priority > *pod.priority;
}

Result<PodList> pods_to_preempt(const core::Pod& preemptor, const PodList& active, const Requirements& requirements) {
  std::array<PodList, 3> classes;  // by QosClass
  for (const auto& pod : active)
    if (may_preempt(preemptor, *pod)) classes[static_cast<std::size_t>(core::qos_class(*pod))].push_back(pod);
  const auto& [best_effort, burstable, guaranteed] = classes;

  if (const auto rest = without(requirements, {&best_effort, &burstable, &guaranteed}); !rest.empty())
    return std::unexpected(not_enough(rest));
  const auto guaranteed_gone = chosen_from(guaranteed, without(requirements, {&best_effort, &burstable}));
  if (!guaranteed_gone) return guaranteed_gone;
  const auto burstable_gone = chosen_from(burstable, without(requirements, {&best_effort, &*guaranteed_gone}));
  if (!burstable_gone) return burstable_gone;
  auto result = chosen_from(best_effort, without(requirements, {&*burstable_gone, &*guaranteed_gone}));
  if (!result) return result;
  result->insert(result->end(), burstable_gone->begin(), burstable_gone->end());
  result->insert(result->end(), guaranteed_gone->begin(), guaranteed_gone->end());
  return result;
}

}  // namespace evictd::admission
