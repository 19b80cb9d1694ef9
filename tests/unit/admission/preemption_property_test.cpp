#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "admission/preemption.hpp"
#include "core/pod_resources.hpp"
#include "core/qos.hpp"
#include "fixture/pods.hpp"
#include "fixture/random.hpp"

// What holds of the victims whatever the pods are.

namespace evictd::admission::preemption_property_test {
namespace {

using fixture::Random;

const std::vector<std::string> resources{"cpu", "memory", "pods"};

core::Pod random_pod(Random& random, const std::string& name) {
  auto pod = fixture::pod(name);
  auto& main = pod.containers[0].resources;
  if (random.chance(70)) main.requests.emplace("memory", core::Quantity::bytes(random.between(0, 8) << 20));
  if (random.chance(70)) main.requests.emplace("cpu", core::Quantity::count(random.between(0, 4)));
  if (random.chance(40)) main.limits = main.requests;
  if (random.chance(80)) pod.priority = static_cast<std::int32_t>(random.pick<std::int64_t>({0, 7, 2'000'000'000}));
  if (random.chance(5)) pod.annotations["kubernetes.io/config.source"] = "file";
  return pod;
}

core::PodList random_pods(Random& random) {
  core::PodList result;
  for (std::int64_t i = random.between(0, 12); i > 0; --i)
    result.push_back(std::make_shared<const core::Pod>(random_pod(random, "p" + std::to_string(i))));
  return result;
}

Requirements random_requirements(Random& random) {
  Requirements result;
  if (random.chance(50)) result.push_back({.resource = "pods", .quantity = random.between(1, 4)});
  if (random.chance(50)) result.push_back({.resource = "cpu", .quantity = random.between(1, 12'000)});
  if (random.chance(50)) result.push_back({.resource = "memory", .quantity = random.between(1, 24 << 20)});
  return result;
}

std::int64_t freed(const core::PodList& pods, const std::string& resource) {
  std::int64_t sum = 0;
  for (const auto& pod : pods) {
    const auto request = core::pod_request(*pod, resource);
    sum += resource == "pods" ? 1 : resource == "cpu" ? request.milli_value() : request.value();
  }
  return sum;
}

bool cover(const core::PodList& pods, const Requirements& requirements) {
  return std::ranges::all_of(requirements, [&](const Requirement& requirement) {
    return freed(pods, requirement.resource) >= requirement.quantity;
  });
}

core::PodList preemptable(const core::Pod& preemptor, const core::PodList& active) {
  core::PodList result;
  std::ranges::copy_if(active, std::back_inserter(result),
                       [&](const core::PodPtr& pod) { return may_preempt(preemptor, *pod); });
  return result;
}

core::PodList of_class(const core::PodList& pods, core::QosClass qos) {
  core::PodList result;
  std::ranges::copy_if(pods, std::back_inserter(result),
                       [&](const core::PodPtr& pod) { return core::qos_class(*pod) == qos; });
  return result;
}

/// Everybody of the classes below, and the victims of the class itself and of those above: what the choice within a
/// class has to reckon with.
core::PodList reckoned_with(const core::PodList& candidates, const core::PodList& victims, core::QosClass qos) {
  core::PodList result;
  for (const auto& pod : candidates) {
    const bool is_victim = std::ranges::find(victims, pod) != victims.end();
    if (core::qos_class(*pod) < qos || is_victim) result.push_back(pod);
  }
  return result;
}

struct Trial {
  core::Pod preemptor;
  core::PodList active;
  Requirements requirements;
};

Trial random_trial(std::uint64_t seed) {
  Random random{seed};
  auto preemptor = fixture::pod("preemptor");
  preemptor.priority = static_cast<std::int32_t>(random.pick<std::int64_t>({2'000'000'000, 2'000'001'000}));
  return {.preemptor = preemptor, .active = random_pods(random), .requirements = random_requirements(random)};
}

}  // namespace

TEST_CASE("preemption covers the need exactly when all that may go would cover it") {
  std::size_t enough = 0;
  std::size_t not_enough = 0;
  for (const auto seed : fixture::seeds(2000)) {
    CAPTURE(seed);
    const auto [preemptor, active, requirements] = random_trial(seed);
    const auto victims = pods_to_preempt(preemptor, active, requirements);
    const bool possible = cover(preemptable(preemptor, active), requirements);
    CHECK(victims.has_value() == possible);
    if (victims) CHECK(cover(*victims, requirements));
    ++(victims ? enough : not_enough);
  }
  CHECK(enough > 200);
  CHECK(not_enough > 200);
}

TEST_CASE("nobody goes twice, and no critical pod for one of the same or a lower priority") {
  for (const auto seed : fixture::seeds(2000)) {
    CAPTURE(seed);
    const auto [preemptor, active, requirements] = random_trial(seed);
    const auto victims = pods_to_preempt(preemptor, active, requirements);
    if (!victims) continue;
    std::set<core::PodPtr> seen;
    for (const auto& victim : *victims) {
      CHECK(std::ranges::find(active, victim) != active.end());
      CHECK(seen.insert(victim).second);
      const bool may_go = !core::is_critical(*victim) || (victim->priority && *victim->priority < *preemptor.priority);
      CHECK(may_go);
    }
  }
}

TEST_CASE("classes go in order: each gives no more than those below, all gone, leave to be freed") {
  std::size_t with_guaranteed = 0;
  for (const auto seed : fixture::seeds(2000)) {
    CAPTURE(seed);
    const auto [preemptor, active, requirements] = random_trial(seed);
    const auto victims = pods_to_preempt(preemptor, active, requirements);
    if (!victims) continue;
    const auto candidates = preemptable(preemptor, active);
    for (const auto qos : {core::QosClass::BestEffort, core::QosClass::Burstable, core::QosClass::Guaranteed}) {
      const auto chosen = of_class(*victims, qos);
      if (chosen.empty()) continue;
      with_guaranteed += qos == core::QosClass::Guaranteed ? 1 : 0;
      // The one chosen last was still needed beside all that the class has to reckon with.
      auto without_last = reckoned_with(candidates, *victims, qos);
      std::erase(without_last, chosen.back());
      CHECK_FALSE(cover(without_last, requirements));
    }
    const bool in_order =
        std::ranges::is_sorted(*victims, {}, [](const core::PodPtr& victim) { return core::qos_class(*victim); });
    CHECK(in_order);
  }
  CHECK(with_guaranteed > 50);
}

}  // namespace evictd::admission::preemption_property_test
