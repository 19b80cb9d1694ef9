#include "core/oom_order.hpp"

#include <doctest/doctest.h>

#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/oom_steering.hpp"
#include "core/qos.hpp"
#include "fixture/pods.hpp"

namespace evictd::core::oom_order_test {
namespace {

using fixture::container;
using fixture::pod;
using fixture::with_priority;
using fixture::operator""_MiB;

constexpr auto capacity = 1000_MiB;  // a MiB is a thousandth

PlacedPod placed(Pod pod, std::int64_t usage) {
  return {.ranked = {.pod = std::make_shared<const Pod>(std::move(pod)), .usage = usage}};
}
Pod burstable(const char* name) { return pod(name, {container("main", {{"memory", "100Mi"}})}); }
Pod guaranteed(const char* name) {
  return pod(name, {container("main", {{"cpu", "1"}, {"memory", "100Mi"}}, {{"cpu", "1"}, {"memory", "100Mi"}})});
}
bool all(const Pod&) { return true; }
bool none(const Pod&) { return false; }

/// The first container requests 2 MiB, each later one a MiB more than the one before.
std::vector<Container> ever_larger(std::size_t count,
                                   Container (*make)(std::string, fixture::Amounts, fixture::Amounts)) {
  std::vector<Container> containers;
  for (std::size_t i = 0; i < count; ++i)
    containers.push_back(make(std::to_string(i), {{"memory", (std::to_string(i + 2) + "Mi").c_str()}}, {}));
  return containers;
}

}  // namespace

TEST_CASE("critical and guaranteed pods are not raised, nor those out of reach; the others stand behind them") {
  const std::vector ranking{
      placed(burstable("first"), 300_MiB), placed(burstable("foreign"), 200_MiB), placed(guaranteed("safe"), 90_MiB),
      placed(with_priority(burstable("vital"), system_critical_priority), 50_MiB), placed(pod("last"), 10_MiB)};
  const auto order = oom_order(ranking, 8, capacity, [](const Pod& pod) { return pod.name != "foreign"; });
  CHECK(order.raised == std::vector<std::size_t>{0, 4});
  CHECK(order.behind == 200 + 1 + 900);  // foreign's share, rounded up, and what the kubelet gave it
}

TEST_CASE("of many the likeliest are raised, and the others count as they are") {
  const std::vector ranking{placed(pod("a"), 30_MiB), placed(pod("b"), 20_MiB), placed(pod("c"), 10_MiB)};
  const auto order = oom_order(ranking, 2, capacity, all);
  CHECK(order.raised == std::vector<std::size_t>{0, 1});
  CHECK(order.behind == 10 + 1 + most_adj);
}

TEST_CASE("a pod of thousands of containers, whatever they are, costs one look at each of them") {
  constexpr std::size_t many = 6000;
  auto shared = pod("shared", ever_larger(many, fixture::container));
  shared.resources = ResourceRequirements{.requests = fixture::amounts({{"memory", "1Ti"}}), .limits = {}};
  const std::vector ranking{placed(pod("regular", ever_larger(many, fixture::container)), 30_MiB),
                            placed(pod("restarted", ever_larger(many, fixture::sidecar)), 20_MiB),
                            placed(std::move(shared), 10_MiB)};
  const auto begin = std::clock();
  const auto order = oom_order(ranking, 8, capacity, none);
  CHECK(std::clock() - begin < 2 * CLOCKS_PER_SEC);  // a look at each for each of them takes many
  CHECK(order.raised.empty());
  CHECK(order.behind == 30 + 1 + 998);
}

TEST_CASE("each class is raised to its end, and not into the next one") {
  CHECK(most_raised(burstable("a")) == most_burstable_adj);
  CHECK(most_raised(pod("b")) == most_adj);
}

}  // namespace evictd::core::oom_order_test
