#include "core/qos.hpp"

#include <doctest/doctest.h>

#include "core/pod_resources.hpp"
#include "fixture/pods.hpp"

namespace evictd::core::qos_test {
namespace {

using enum QosClass;
using fixture::amounts;
using fixture::container;
using fixture::pod;
using fixture::sidecar;
using fixture::operator""_GiB;
using fixture::operator""_MiB;

const auto guaranteed = container("g", {{"cpu", "1"}, {"memory", "1Gi"}}, {{"cpu", "1"}, {"memory", "1Gi"}});

QosClass class_of(std::vector<Container> containers) { return qos_class(pod("a", std::move(containers))); }

int adjust(const Pod& pod, std::size_t container = 0) {
  return oom_score_adj(pod, pod.containers.at(container), 4_GiB);
}

Pod with_pod_level(Pod pod, fixture::Amounts requests, fixture::Amounts limits = {}) {
  pod.resources = ResourceRequirements{.requests = amounts(requests), .limits = amounts(limits)};
  return pod;
}

}  // namespace

TEST_CASE("a pod that asks for no cpu and no memory is BestEffort, whatever else it asks for") {
  CHECK(class_of({container("x")}) == BestEffort);
  CHECK(class_of({container(
            "x", {{"ephemeral-storage", "1Gi"}, {"hugepages-2Mi", "4Mi"}, {"example.org/gpu", "1"}})}) == BestEffort);
  CHECK(class_of({container("x", {{"cpu", "0"}, {"memory", "0"}}, {{"memory", "0"}})}) == BestEffort);
}

TEST_CASE("a pod is Guaranteed where every container has equal requests and limits of cpu and memory") {
  CHECK(class_of({guaranteed}) == Guaranteed);
  CHECK(class_of({guaranteed, container("h", {{"cpu", "1000m"}, {"memory", "2Gi"}},
                                        {{"cpu", "1"}, {"memory", "2048Mi"}})}) == Guaranteed);
  CHECK(class_of({container("x", {{"cpu", "1"}, {"memory", "1Gi"}}, {{"cpu", "1"}, {"memory", "2Gi"}})}) == Burstable);
  CHECK(class_of({container("x", {{"memory", "1Gi"}}, {{"memory", "1Gi"}})}) == Burstable);
  CHECK(class_of({container("x", {{"cpu", "1"}, {"memory", "1Gi"}})}) == Burstable);
  CHECK(class_of({container("x", {}, {{"cpu", "1"}, {"memory", "1Gi"}})}) == Burstable);
}

TEST_CASE("limits alone make a pod Guaranteed once requests are filled in") {
  auto limited = pod("a", {container("x", {}, {{"cpu", "1"}, {"memory", "1Gi"}})});
  apply_request_defaults(limited);
  CHECK(qos_class(limited) == Guaranteed);
}

TEST_CASE("containers of different classes make a pod Burstable, init containers and sidecars included") {
  CHECK(class_of({guaranteed, container("x")}) == Burstable);
  CHECK(class_of({container("x", {{"cpu", "1m"}}), container("y")}) == Burstable);
  auto mixed = pod("a", {guaranteed});
  mixed.init_containers = {container("i")};
  CHECK(qos_class(mixed) == Burstable);
  mixed.init_containers = {guaranteed};
  CHECK(qos_class(mixed) == Guaranteed);
}

TEST_CASE("a class that is known goes before what would be computed") {
  auto known = pod("a", {guaranteed});
  known.status_qos = BestEffort;
  CHECK(qos_class(known) == BestEffort);
}

TEST_CASE("pod-level resources decide alone") {
  CHECK(qos_class(with_pod_level(pod("a"), {{"cpu", "1"}, {"memory", "1Gi"}}, {{"cpu", "1"}, {"memory", "1Gi"}})) ==
        Guaranteed);
  CHECK(qos_class(with_pod_level(pod("a", {guaranteed}), {{"memory", "1Gi"}})) == Burstable);
  CHECK(qos_class(with_pod_level(pod("a", {guaranteed}), {{"hugepages-2Mi", "4Mi"}}, {{"hugepages-2Mi", "4Mi"}})) ==
        BestEffort);
  CHECK(qos_class(with_pod_level(pod("a", {guaranteed}), {{"memory", "0"}})) == BestEffort);
  CHECK(qos_class(with_pod_level(pod("a", {guaranteed}), {})) == BestEffort);  // resources: {}
}

TEST_CASE("Guaranteed pods are killed last, BestEffort pods first") {
  CHECK(adjust(pod("a", {guaranteed})) == -997);
  CHECK(adjust(pod("a")) == 1000);
}

TEST_CASE("a Burstable container's adjustment falls with its share of the memory") {
  const auto burstable = [](const char* memory) { return adjust(pod("a", {container("x", {{"memory", memory}})})); };
  CHECK(burstable("1Gi") == 750);
  CHECK(burstable("400Mi") == 903);  // 1000 - 97, of 97.65 the whole part
  CHECK(burstable("1Mi") == 999);    // 1000 would be as bad as BestEffort
  CHECK(burstable("4088Mi") == 3);   // 2 by the formula
  CHECK(burstable("4Gi") == 3);      // never as good as Guaranteed
  CHECK(burstable("100Ti") == 3);
  CHECK(adjust(pod("a", {container("x", {{"cpu", "1"}})})) == 999);
}

TEST_CASE("each container is rated by its own request") {
  const auto two = pod("a", {container("x", {{"memory", "2Gi"}}), container("y", {{"memory", "1Gi"}})});
  CHECK(adjust(two, 0) == 500);
  CHECK(adjust(two, 1) == 750);
}

TEST_CASE("a critical pod of the class system-node-critical is killed last; no other critical pod is") {
  auto node_critical = fixture::with_priority(pod("a"), 2'000'001'000);
  node_critical.priority_class_name = "system-node-critical";
  CHECK(adjust(node_critical) == -997);
  auto cluster_critical = fixture::with_priority(pod("a"), 2'000'000'000);
  cluster_critical.priority_class_name = "system-cluster-critical";
  CHECK(adjust(cluster_critical) == 1000);
  auto only_named = pod("a");
  only_named.priority_class_name = "system-node-critical";
  CHECK(adjust(only_named) == 1000);
}

TEST_CASE("a sidecar goes no sooner than the regular container with the smallest request") {
  auto x = pod("a", {container("x", {{"memory", "2Gi"}}), container("y", {{"memory", "1Gi"}})});
  x.init_containers = {sidecar("s", {{"memory", "1Mi"}}), sidecar("t", {{"memory", "3Gi"}}),
                       container("i", {{"memory", "1Mi"}})};
  CHECK(oom_score_adj(x, x.init_containers[0], 4_GiB) == 750);
  CHECK(oom_score_adj(x, x.init_containers[1], 4_GiB) == 250);
  CHECK(oom_score_adj(x, x.init_containers[2], 4_GiB) == 999);
}

TEST_CASE("what a pod-level request leaves over is shared among all containers, init containers included") {
  auto x = with_pod_level(pod("a", {container("x", {{"memory", "1Gi"}}), container("y")}), {{"memory", "3Gi"}});
  CHECK(adjust(x, 0) == 500);  // 1Gi and half of the other 2Gi
  CHECK(adjust(x, 1) == 750);
  x.init_containers = {container("i"), sidecar("s")};
  CHECK(adjust(x, 0) == 625);  // a quarter of 2Gi
  CHECK(adjust(x, 1) == 875);
  CHECK(oom_score_adj(x, x.init_containers[1], 4_GiB) == 875);
  x.init_containers = {container("i", {{"memory", "3Gi"}})};  // nothing is left over beside it
  CHECK(adjust(x, 0) == 750);
}

TEST_CASE("a Burstable request is found again from its adjustment, to a thousandth of the capacity") {
  CHECK(request_from_oom_score_adj(750, 4_GiB) == 1_GiB);
  CHECK(request_from_oom_score_adj(999, 1000) == 1);
  CHECK(request_from_oom_score_adj(2, 1000) == 998);
  for (int adjustment = 3; adjustment <= 998; ++adjustment) {
    auto x = pod("a", {container("x")});
    // One byte more than the inverse gives, since that rounds down what the adjustment rounded down before.
    x.containers[0].resources.requests["memory"] = Quantity::bytes(request_from_oom_score_adj(adjustment, 4_GiB) + 1);
    CHECK(adjust(x) == adjustment);
  }
}

}  // namespace evictd::core::qos_test
