#include "core/pod_resources.hpp"

#include <doctest/doctest.h>

#include "fixture/pods.hpp"

namespace evictd::core::pod_resources_test {
namespace {

using fixture::amounts;
using fixture::container;
using fixture::pod;
using fixture::quantity;
using fixture::sidecar;

std::string memory_request(const Pod& pod) { return pod_request(pod, "memory").to_string(); }

Pod with_inits(std::vector<Container> inits, std::vector<Container> containers) {
  auto result = pod("a", std::move(containers));
  result.init_containers = std::move(inits);
  return result;
}

Pod with_pod_level(Pod pod, fixture::Amounts requests, fixture::Amounts limits = {}) {
  pod.resources = ResourceRequirements{.requests = amounts(requests), .limits = amounts(limits)};
  return pod;
}

}  // namespace

TEST_CASE("a pod asks for the sum of its containers") {
  const auto two =
      pod("a", {container("x", {{"memory", "100Mi"}}), container("y", {{"memory", "200Mi"}, {"cpu", "1"}})});
  CHECK(memory_request(two) == "300Mi");
  CHECK(pod_request(two, "cpu").to_string() == "1");
  CHECK(pod_request(two, "ephemeral-storage").is_zero());
  CHECK(memory_request(pod("a")) == "0");
}

TEST_CASE("an ordinary init container runs alone: the larger of it and the sum counts") {
  CHECK(memory_request(with_inits({container("i", {{"memory", "500Mi"}})}, {container("x", {{"memory", "300Mi"}})})) ==
        "500Mi");
  CHECK(memory_request(with_inits({container("i", {{"memory", "100Mi"}}), container("j", {{"memory", "200Mi"}})},
                                  {container("x", {{"memory", "300Mi"}})})) == "300Mi");
}

TEST_CASE("sidecars run beside the containers and beside the init containers started after them") {
  const auto x = container("x", {{"memory", "300Mi"}});
  CHECK(memory_request(with_inits({sidecar("s", {{"memory", "100Mi"}})}, {x})) == "400Mi");
  CHECK(memory_request(with_inits({sidecar("s", {{"memory", "100Mi"}}), container("i", {{"memory", "350Mi"}})}, {x})) ==
        "450Mi");
  CHECK(memory_request(with_inits({container("i", {{"memory", "350Mi"}}), sidecar("s", {{"memory", "100Mi"}})}, {x})) ==
        "400Mi");
  CHECK(memory_request(with_inits({sidecar("s", {{"memory", "1Gi"}}), sidecar("t", {{"memory", "1Gi"}})}, {})) ==
        "2Gi");
}

TEST_CASE("with any pod-level resource no container's request counts, not even of a resource that it does not name") {
  const auto x = pod("a", {container("x", {{"memory", "300Mi"}, {"cpu", "1"}, {"ephemeral-storage", "2Gi"}})});
  CHECK(memory_request(with_pod_level(x, {{"memory", "1Gi"}})) == "1Gi");
  CHECK(memory_request(with_pod_level(x, {{"memory", "100Mi"}})) == "100Mi");
  struct Row {
    ResourceRequirements pod_level;
    const char* memory;
    const char* cpu;
    const char* disk;
  };
  const auto requested = [](fixture::Amounts list) {
    return ResourceRequirements{.requests = amounts(list), .limits = {}};
  };
  for (const auto& [pod_level, memory, cpu, disk] : {
           Row{{}, "300Mi", "1", "2Gi"},
           Row{requested({{"memory", "1Gi"}}), "1Gi", "0", "0"},
           Row{requested({{"cpu", "2"}}), "0", "2", "0"},
           Row{requested({{"hugepages-2Mi", "4Mi"}}), "0", "0", "0"},
           Row{{.requests = {}, .limits = amounts({{"cpu", "2"}})}, "0", "0", "0"},
           // What a pod cannot ask for as a whole counts for nothing there, and takes nothing from its containers.
           Row{requested({{"ephemeral-storage", "9Gi"}, {"example.com/gpu", "1"}}), "300Mi", "1", "2Gi"},
           Row{requested({{"ephemeral-storage", "9Gi"}, {"cpu", "2"}}), "0", "2", "0"},
       }) {
    auto subject = x;
    subject.resources = pod_level;
    CAPTURE(pod_level.requests.size());
    CAPTURE(pod_level.limits.size());
    CHECK(memory_request(subject) == memory);
    CHECK(pod_request(subject, "cpu").to_string() == cpu);
    CHECK(pod_request(subject, "ephemeral-storage").to_string() == disk);
  }
}

TEST_CASE("pod-level limits stand instead of the containers' resource by resource") {
  const auto x = pod("a", {container("x", {}, {{"memory", "300Mi"}, {"cpu", "1"}, {"ephemeral-storage", "2Gi"}})});
  const auto subject = with_pod_level(x, {}, {{"memory", "1Gi"}, {"ephemeral-storage", "9Gi"}});
  CHECK(pod_limits(subject) == amounts({{"memory", "1Gi"}, {"cpu", "1"}, {"ephemeral-storage", "2Gi"}}));
}

TEST_CASE("overhead is added where there is something to add it to") {
  auto x = pod("a", {container("x", {{"memory", "300Mi"}})});
  x.overhead = amounts({{"memory", "100Mi"}, {"cpu", "250m"}});
  CHECK(memory_request(x) == "400Mi");
  CHECK(pod_request(x, "cpu").is_zero());
  CHECK(memory_request(with_pod_level(x, {{"memory", "1Gi"}})) == "1124Mi");
  CHECK(memory_request(with_pod_level(x, {{"memory", "0"}})) == "0");
}

TEST_CASE("limits add up like requests, with overhead only where there is a limit") {
  auto x = with_inits({sidecar("s", {}, {{"memory", "50Mi"}}), container("i", {}, {{"memory", "1Gi"}})},
                      {container("x", {}, {{"memory", "300Mi"}}), container("y")});
  CHECK(pod_limit(x, "memory").to_string() == "1074Mi");
  x.overhead = amounts({{"memory", "1Mi"}, {"ephemeral-storage", "1Mi"}});
  CHECK(pod_limit(x, "memory").to_string() == "1075Mi");
  CHECK(pod_limit(x, "ephemeral-storage").is_zero());
  CHECK(pod_limit(with_pod_level(x, {}, {{"memory", "4Gi"}}), "memory").to_string() == "4097Mi");
}

TEST_CASE("a container's own request is zero where it names none") {
  CHECK(container_request(container("x", {{"memory", "300Mi"}}), "memory") == quantity("300Mi"));
  CHECK(container_request(container("x", {}, {{"memory", "300Mi"}}), "memory").is_zero());
}

TEST_CASE("the lists name every resource any part of the pod names, and overhead by itself is none") {
  auto x =
      with_inits({container("i", {{"example.org/gpu", "2"}})}, {container("x", {{"cpu", "1"}}, {{"memory", "1Gi"}})});
  x.overhead = amounts({{"ephemeral-storage", "1Gi"}});
  CHECK(pod_requests(x) == amounts({{"cpu", "1"}, {"example.org/gpu", "2"}}));
  CHECK(pod_limits(x) == amounts({{"memory", "1Gi"}}));
  CHECK(pod_requests(with_pod_level(x, {{"memory", "2Gi"}})).contains("memory"));
}

TEST_CASE("sums print canonically, whatever the text of their parts") {
  const auto odd = pod("a", {container("x", {{"memory", "100.035k"}, {"cpu", "+5"}, {"example.org/x", "1E6"}})});
  CHECK(memory_request(odd) == "100035");
  CHECK(pod_request(odd, "cpu").to_string() == "5");
  CHECK(pod_request(odd, "example.org/x").to_string() == "1e6");
  CHECK(memory_request(with_pod_level(odd, {{"memory", "100.035k"}})) == "100035");
}

TEST_CASE("absent requests become the limits, given ones stay") {
  auto x = with_inits({container("i", {}, {{"cpu", "1"}})},
                      {container("x", {{"memory", "100Mi"}}, {{"memory", "1Gi"}, {"cpu", "2"}})});
  apply_request_defaults(x);
  CHECK(x.containers[0].resources.requests == amounts({{"memory", "100Mi"}, {"cpu", "2"}}));
  CHECK(x.containers[0].resources.limits == amounts({{"memory", "1Gi"}, {"cpu", "2"}}));
  CHECK(x.init_containers[0].resources.requests == amounts({{"cpu", "1"}}));
}

TEST_CASE("absent pod-level requests are what the containers ask for, and only then the pod-level limits") {
  auto x = with_pod_level(pod("a", {container("x", {{"memory", "100Mi"}}), container("y", {{"memory", "200Mi"}})}), {},
                          {{"memory", "1Gi"}, {"cpu", "2"}});
  apply_request_defaults(x);
  CHECK(x.resources->requests == amounts({{"memory", "300Mi"}, {"cpu", "2"}}));
  CHECK(memory_request(x) == "300Mi");

  auto given =
      with_pod_level(pod("a", {container("x", {{"memory", "100Mi"}})}), {{"memory", "500Mi"}}, {{"memory", "1Gi"}});
  apply_request_defaults(given);
  CHECK(memory_request(given) == "500Mi");
}

TEST_CASE("pod-level requests are filled in only where there are pod-level limits") {
  const auto x = pod("a", {container("x", {{"memory", "100Mi"}, {"cpu", "0"}, {"ephemeral-storage", "1Gi"}})});
  auto requests_alone = with_pod_level(x, {{"cpu", "1"}});
  apply_request_defaults(requests_alone);
  CHECK(requests_alone.resources->requests == amounts({{"cpu", "1"}}));
  CHECK(memory_request(requests_alone) == "0");

  auto limited = with_pod_level(x, {}, {{"cpu", "2"}, {"ephemeral-storage", "9Gi"}});
  apply_request_defaults(limited);
  CHECK(limited.resources->requests == amounts({{"cpu", "0"}, {"memory", "100Mi"}}));

  auto nothing = with_pod_level(x, {});
  apply_request_defaults(nothing);
  CHECK(nothing.resources->empty());
}

TEST_CASE("a pod with pod-level resources may use as many huge pages as its containers may") {
  const auto x = pod("a", {container("x", {{"memory", "100Mi"}}, {{"hugepages-2Mi", "4Mi"}}),
                           container("y", {}, {{"hugepages-2Mi", "2Mi"}})});
  auto subject = with_pod_level(x, {{"cpu", "1"}});
  apply_request_defaults(subject);
  CHECK(subject.resources->limits == amounts({{"hugepages-2Mi", "6Mi"}}));
  CHECK(subject.resources->requests == amounts({{"cpu", "1"}, {"memory", "100Mi"}, {"hugepages-2Mi", "6Mi"}}));

  auto given = with_pod_level(x, {}, {{"hugepages-2Mi", "8Mi"}});
  apply_request_defaults(given);
  CHECK(given.resources->requests == amounts({{"memory", "100Mi"}, {"hugepages-2Mi", "8Mi"}}));
}

}  // namespace evictd::core::pod_resources_test
