#include "core/resize.hpp"

#include <doctest/doctest.h>

#include "core/pod_resources.hpp"
#include "core/qos.hpp"
#include "fixture/pods.hpp"

namespace evictd::core::resize_test {
namespace {

using fixture::amounts;
using fixture::Amounts;
using fixture::container;
using fixture::pod;
using fixture::sidecar;

GivenRequests allocated(Amounts requests) { return {.allocated = amounts(requests)}; }

GivenRequests given(Amounts allocated, Amounts actuated) {
  return {.allocated = amounts(allocated), .actuated = amounts(actuated)};
}

/// After what the status says of its container "main".
Pod resized(Pod pod, GivenRequests main, bool infeasible = false) {
  apply_resize(pod, {.containers = {{"main", std::move(main)}}, .infeasible = infeasible});
  return pod;
}

Pod asking(Amounts requests, Amounts limits = {}) { return pod("a", {container("main", requests, limits)}); }

Pod asking_as_a_whole(Amounts requests, Amounts of_container = {}) {
  auto result = asking(of_container);
  result.resources = ResourceRequirements{.requests = amounts(requests), .limits = {}};
  return result;
}

std::string memory_request(const Pod& pod) { return pod_request(pod, "memory").to_string(); }
std::string taken_memory(const Pod& pod) { return pod.taken.value().at("memory").to_string(); }

}  // namespace

TEST_CASE("a pod is ranked by the cpu and memory that were allocated, and by the spec's other requests") {
  const auto after = resized(asking({{"memory", "2Gi"}, {"cpu", "2"}, {"ephemeral-storage", "1Gi"}}),
                             allocated({{"memory", "500Mi"}, {"ephemeral-storage", "7Gi"}}));
  CHECK(memory_request(after) == "500Mi");
  CHECK(pod_request(after, "cpu").is_zero());  // was added by the resize
  CHECK(pod_request(after, "ephemeral-storage") == fixture::quantity("1Gi"));
  CHECK(container_request(after.containers[0], "memory") == fixture::quantity("500Mi"));
}

TEST_CASE("a container of which the status tells nothing has its spec's requests") {
  auto two = pod("a", {container("main", {{"memory", "2Gi"}}), container("other", {{"memory", "100Mi"}})});
  CHECK(memory_request(resized(two, allocated({{"memory", "1Gi"}}))) == "1124Mi");
  CHECK(memory_request(resized(two, {.actuated = amounts({{"memory", "1Gi"}})})) == "2148Mi");
}

TEST_CASE("without anything in the status a pod stays as it is") {
  auto untold = asking({{"memory", "2Gi"}});
  const auto before = untold;
  apply_resize(untold, {.infeasible = true});
  CHECK(untold == before);
}

TEST_CASE("the QoS class stays the spec's") {
  auto guaranteed = asking({{"memory", "2Gi"}, {"cpu", "1"}}, {{"memory", "2Gi"}, {"cpu", "1"}});
  CHECK(qos_class(resized(guaranteed, allocated({{"memory", "1Gi"}, {"cpu", "1"}}))) == QosClass::Guaranteed);
  guaranteed.status_qos = QosClass::Burstable;
  CHECK(qos_class(resized(guaranteed, allocated({{"memory", "1Gi"}, {"cpu", "1"}}))) == QosClass::Burstable);
}

TEST_CASE("a pod takes the largest of what it requests, what is allocated and what is actuated") {
  const auto of = [](const char* spec, const char* allocated, const char* actuated) {
    return taken_memory(resized(asking({{"memory", spec}}), given({{"memory", allocated}}, {{"memory", actuated}})));
  };
  CHECK(of("3Gi", "2Gi", "1Gi") == "3Gi");
  CHECK(of("1Gi", "3Gi", "2Gi") == "3Gi");
  CHECK(of("1Gi", "2Gi", "3Gi") == "3Gi");
  CHECK(taken_memory(resized(asking({{"memory", "1Gi"}}), {.actuated = amounts({{"memory", "2Gi"}})})) == "2Gi");
  CHECK(taken_memory(resized(asking({{"memory", "1Gi"}}), given({{"memory", "2Gi"}}, {}))) == "2Gi");
}

TEST_CASE("what an infeasible resize requests is not taken, but what cannot be resized is") {
  const auto after = resized(asking({{"memory", "9Gi"}, {"ephemeral-storage", "1Gi"}}),
                             given({{"memory", "1Gi"}}, {{"memory", "2Gi"}}), true);
  CHECK(after.taken == amounts({{"memory", "2Gi"}, {"ephemeral-storage", "1Gi"}}));
  CHECK(memory_request(after) == "1Gi");
}

TEST_CASE("the largest is that of the sums, not of each container") {
  auto two = pod("a", {container("x", {{"memory", "1Gi"}}), container("y", {{"memory", "2Gi"}})});
  apply_resize(two, {.containers = {{"x", allocated({{"memory", "2Gi"}})}, {"y", allocated({{"memory", "1Gi"}})}}});
  CHECK(taken_memory(two) == "3Gi");
}

TEST_CASE("init containers are resized too") {
  auto subject = asking({{"memory", "1Gi"}});
  subject.init_containers = {sidecar("s", {{"memory", "100Mi"}}), container("i", {{"memory", "1Gi"}})};
  apply_resize(subject, {.containers = {{"s", allocated({{"memory", "300Mi"}})}}});
  CHECK(memory_request(subject) == "1324Mi");
  CHECK(taken_memory(subject) == "1324Mi");
}

TEST_CASE("what was allocated to the pod as a whole takes the place of what its spec names") {
  auto subject = asking_as_a_whole({{"memory", "1Gi"}, {"hugepages-2Mi", "4Mi"}}, {{"cpu", "1"}});
  apply_resize(subject, {.pod = given({{"memory", "200Mi"}, {"cpu", "1"}}, {{"memory", "400Mi"}, {"cpu", "2"}})});
  CHECK(memory_request(subject) == "200Mi");
  CHECK(pod_request(subject, "cpu").is_zero());
  CHECK(pod_request(subject, "hugepages-2Mi") == fixture::quantity("4Mi"));
  CHECK(subject.taken == amounts({{"memory", "1Gi"}, {"cpu", "2"}, {"hugepages-2Mi", "4Mi"}}));
}

TEST_CASE("of the pod as a whole an infeasible resize is left out where its actuated resources are told") {
  auto told = asking_as_a_whole({{"memory", "9Gi"}});
  auto untold = told;
  apply_resize(told, {.pod = given({{"memory", "200Mi"}}, {{"memory", "400Mi"}}), .infeasible = true});
  CHECK(taken_memory(told) == "400Mi");
  apply_resize(untold, {.pod = allocated({{"memory", "200Mi"}}), .infeasible = true});
  CHECK(taken_memory(untold) == "9Gi");
}

TEST_CASE("the sums of the status count for a pod without resources as a whole, but only in what it takes") {
  auto subject = asking({{"memory", "1Gi"}});
  apply_resize(subject, {.pod = given({{"memory", "2Gi"}}, {{"memory", "3Gi"}})});
  CHECK(memory_request(subject) == "1Gi");
  CHECK(taken_memory(subject) == "3Gi");
}

TEST_CASE("a pod whose resize was admitted just now asks for what is desired, and takes no less than before") {
  auto grown = asking({{"memory", "1Gi"}, {"cpu", "2"}, {"ephemeral-storage", "1Gi"}});
  allocate_resize(grown, asking({{"memory", "2Gi"}, {"cpu", "1"}}));
  CHECK(memory_request(grown) == "2Gi");
  CHECK(pod_request(grown, "cpu") == fixture::quantity("1"));
  CHECK(pod_request(grown, "ephemeral-storage") == fixture::quantity("1Gi"));
  CHECK(grown.taken == amounts({{"memory", "2Gi"}, {"cpu", "2"}, {"ephemeral-storage", "1Gi"}}));
  allocate_resize(grown, asking({{"memory", "1Gi"}, {"cpu", "1"}}));
  CHECK(memory_request(grown) == "1Gi");
  CHECK(taken_memory(grown) == "2Gi");
}

TEST_CASE("a desired pod without containers changes nothing, one with requests as a whole changes those") {
  auto subject = resized(asking({{"memory", "2Gi"}}), allocated({{"memory", "1Gi"}}));
  const auto before = subject;
  allocate_resize(subject, pod("a", {}));
  CHECK(subject == before);
  auto whole = asking_as_a_whole({{"memory", "1Gi"}});
  allocate_resize(whole, asking_as_a_whole({{"memory", "3Gi"}}));
  CHECK(memory_request(whole) == "3Gi");
  CHECK(taken_memory(whole) == "3Gi");
}

TEST_CASE("a pod of which less is told than it was admitted with asks for that, and takes the largest of both") {
  auto told = pod("a", {container("init", {{"memory", "4Gi"}, {"cpu", "1"}})});
  auto admitted = asking({{"memory", "5Gi"}});
  admitted.init_containers = {container("init", {{"memory", "4Gi"}})};
  CHECK(raise_to_admitted(told, admitted));
  CHECK(memory_request(told) == "5Gi");
  CHECK(told.taken == amounts({{"memory", "5Gi"}, {"cpu", "1"}}));

  auto sandbox = pod("a", {});
  auto whole = asking_as_a_whole({{"memory", "2Gi"}});
  whole.overhead = amounts({{"memory", "100Mi"}});
  CHECK(raise_to_admitted(sandbox, whole));
  CHECK(memory_request(sandbox) == "2148Mi");
  CHECK(taken_memory(sandbox) == "2Gi");  // overhead aside
}

TEST_CASE("a pod of which a container is told is asked for that as well, whatever its sandbox asked for as a whole") {
  auto told = asking({{"memory", "1Gi"}});
  CHECK(raise_to_admitted(told, asking_as_a_whole({{"memory", "3Gi"}}, {{"memory", "1Gi"}})));
  CHECK_FALSE(told.resources);
  CHECK(taken_memory(told) == "3Gi");
  allocate_resize(told, asking({{"memory", "4Gi"}}));
  CHECK(taken_memory(told) == "4Gi");
}

TEST_CASE("a pod of which no less is told than it was admitted with stays as it is") {
  auto told = asking({{"memory", "5Gi"}, {"cpu", "1"}});
  const auto before = told;
  CHECK_FALSE(raise_to_admitted(told, asking({{"memory", "5Gi"}, {"ephemeral-storage", "0"}})));
  CHECK_FALSE(raise_to_admitted(told, pod("a", {})));
  CHECK(told == before);
  auto grown = resized(asking({{"memory", "1Gi"}}), {.actuated = amounts({{"memory", "2Gi"}})});
  CHECK_FALSE(raise_to_admitted(grown, asking({{"memory", "2Gi"}})));
}

}  // namespace evictd::core::resize_test
