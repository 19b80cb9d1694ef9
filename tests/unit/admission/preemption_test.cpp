#include "admission/preemption.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "core/resize.hpp"
#include "fixture/pods.hpp"

namespace evictd::admission::preemption_test {
namespace {

using fixture::amounts;
using fixture::Amounts;
using fixture::container;
using fixture::error_of;
using fixture::pod;
using fixture::pods;
using fixture::value_of;
using fixture::with_annotation;
using fixture::with_priority;
using fixture::operator""_MiB;
using fixture::operator""_GiB;
using Names = std::vector<std::string>;

const auto critical = with_priority(pod("critical"), 2'000'000'000);

core::Pod burstable(const char* name, Amounts requests) { return pod(name, {container("main", requests)}); }
core::Pod guaranteed(const char* name, const char* memory, const char* cpu = "100m") {
  return pod(name, {container("main", {{"memory", memory}, {"cpu", cpu}}, {{"memory", memory}, {"cpu", cpu}})});
}

Names names(const core::PodList& list) {
  Names result;
  for (const auto& pod : list) result.push_back(pod->name);
  return result;
}

Names victims(const core::PodList& active, const Requirements& requirements, const core::Pod& preemptor = critical) {
  return names(value_of(pods_to_preempt(preemptor, active, requirements)));
}

Requirements memory(std::int64_t bytes) { return {{.resource = "memory", .quantity = bytes}}; }

}  // namespace

TEST_CASE("a critical pod preempts all that are not, whatever their priority says") {
  CHECK(may_preempt(critical, pod("a")));
  CHECK(may_preempt(critical, with_priority(pod("a"), 1'999'999'999)));
  const auto file = with_annotation(pod("f"), "kubernetes.io/config.source", "file");
  CHECK(may_preempt(file, with_priority(pod("a"), 7)));
}

TEST_CASE("of critical pods only a lower priority goes, where both have one") {
  const auto node_critical = with_priority(pod("n"), 2'000'001'000);
  CHECK(may_preempt(node_critical, critical));
  CHECK_FALSE(may_preempt(critical, node_critical));
  CHECK_FALSE(may_preempt(critical, critical));
  const auto file = with_annotation(pod("f"), "kubernetes.io/config.source", "file");
  CHECK_FALSE(may_preempt(critical, file));
  CHECK_FALSE(may_preempt(file, critical));
}

TEST_CASE("a pod that is not critical preempts none without a priority") {
  CHECK(may_preempt(with_priority(pod("a"), 2), with_priority(pod("b"), 1)));
  CHECK_FALSE(may_preempt(with_priority(pod("a"), 2), pod("b")));
  CHECK_FALSE(may_preempt(pod("a"), with_priority(pod("b"), -1)));
}

TEST_CASE("nothing missing, nobody goes") { CHECK(victims(pods({pod("a")}), {}).empty()); }

TEST_CASE("the pod that comes closest to what is missing goes") {
  const auto active = pods({burstable("small", {{"memory", "100Mi"}}), burstable("fits", {{"memory", "300Mi"}}),
                            burstable("large", {{"memory", "2Gi"}})});
  CHECK(victims(active, memory(100_MiB)) == Names{"small"});
  CHECK(victims(active, memory(101_MiB)) == Names{"fits"});  // both others free enough; it asks for less
  CHECK(victims(active, memory(301_MiB)) == Names{"large"});
}

TEST_CASE("several go, the closest first, until enough is free") {
  const auto active = pods({burstable("a", {{"memory", "100Mi"}}), burstable("b", {{"memory", "200Mi"}}),
                            burstable("c", {{"memory", "300Mi"}})});
  CHECK(victims(active, memory(400_MiB)) == Names{"c", "a"});
  CHECK(victims(active, memory(450_MiB)) == Names{"c", "b"});
  CHECK(victims(active, memory(600_MiB)) == Names{"c", "b", "a"});
}

TEST_CASE("Guaranteed pods go only for what the others together do not free, and the result begins with BestEffort") {
  const auto active = pods({guaranteed("g1", "1Gi"), guaranteed("g2", "3Gi"), burstable("b1", {{"memory", "1Gi"}}),
                            burstable("b2", {{"memory", "2Gi"}}), pod("e1"), pod("e2")});
  CHECK(victims(active, memory(3_GiB)) == Names{"b2", "b1"});
  CHECK(victims(active, memory(1_GiB)) == Names{"b1"});
  CHECK(victims(active, memory(4_GiB)) == Names{"b2", "b1", "g1"});
  // g2 frees all that the Burstable pods would not; with it gone one of them is enough.
  CHECK(victims(active, memory(5_GiB)) == Names{"b2", "g2"});
  CHECK(victims(active, {{.resource = "pods", .quantity = 1}}) == Names{"e2"});
  CHECK(victims(active, {{.resource = "pods", .quantity = 1}, {.resource = "memory", .quantity = 1_GiB}}) ==
        Names{"b1"});
  CHECK(victims(active, {{.resource = "pods", .quantity = 2}, {.resource = "memory", .quantity = 1_GiB}}) ==
        Names{"e2", "b1"});
}

TEST_CASE("of pods that are equally close the one that asks for less memory goes, then for less CPU") {
  CHECK(victims(
            pods({burstable("a", {{"cpu", "1"}, {"memory", "2Gi"}}), burstable("b", {{"cpu", "2"}, {"memory", "1Gi"}}),
                  burstable("c", {{"cpu", "3"}, {"memory", "3Gi"}})}),
            {{.resource = "cpu", .quantity = 1000}}) == Names{"b"});
  CHECK(victims(
            pods({burstable("a", {{"cpu", "2"}, {"memory", "1Gi"}}), burstable("b", {{"cpu", "1"}, {"memory", "1Gi"}}),
                  burstable("c", {{"cpu", "3"}, {"memory", "1Gi"}})}),
            memory(1_GiB)) == Names{"b"});
}

TEST_CASE("of pods that ask for the same the later one goes, and the last takes its place") {
  const auto active = pods({pod("a"), pod("b"), pod("c"), pod("d")});
  CHECK(victims(active, {{.resource = "pods", .quantity = 3}}) == Names{"d", "c", "b"});
  // "b" is removed first and "d" comes into its place, so that "c" is the last of the two.
  const auto mixed = pods({burstable("a", {{"memory", "2Gi"}}), burstable("b", {{"memory", "1Gi"}}),
                           burstable("c", {{"memory", "2Gi"}}), burstable("d", {{"memory", "2Gi"}})});
  CHECK(victims(mixed, {{.resource = "pods", .quantity = 2}}) == Names{"b", "c"});
}

TEST_CASE("every requirement weighs the same, however large") {
  // One frees all the CPU and no memory, the other half of both: 1 against 0.25 + 0.25.
  const auto active = pods({burstable("cpu", {{"cpu", "1"}}), burstable("both", {{"cpu", "500m"}, {"memory", "1Gi"}}),
                            burstable("rest", {{"cpu", "1"}, {"memory", "8Gi"}})});
  const Requirements needs{{.resource = "cpu", .quantity = 1000}, {.resource = "memory", .quantity = 2_GiB}};
  CHECK(victims(active, needs) == Names{"rest"});
  const auto without_rest =
      pods({burstable("cpu", {{"cpu", "1"}}), burstable("both", {{"cpu", "500m"}, {"memory", "1Gi"}}),
            burstable("more", {{"cpu", "1m"}, {"memory", "1Gi"}})});
  CHECK(victims(without_rest, needs) == Names{"both", "more", "cpu"});
}

TEST_CASE("overhead is freed only with a request, as the kubelet counts it") {
  auto heavy = burstable("heavy", {{"memory", "1Gi"}});
  heavy.overhead = amounts({{"memory", "1Gi"}, {"ephemeral-storage", "1Gi"}});
  CHECK(victims(pods({heavy}), memory(2_GiB)) == Names{"heavy"});
  CHECK(error_of(pods_to_preempt(critical, pods({heavy}), {{.resource = "ephemeral-storage", .quantity = 1}})) ==
        "no set of running pods found to reclaim resources: [(res: ephemeral-storage, q: 1), ]");
}

TEST_CASE("a pod that is resized frees what was allocated to it") {
  const auto resized = [](const char* name, const char* spec, const char* allocated) {
    auto result = burstable(name, {{"memory", spec}});
    core::apply_resize(result, {.containers = {{"main", {.allocated = amounts({{"memory", allocated}})}}}});
    return result;
  };
  const auto active = pods({resized("grows", "4Gi", "100Mi"), resized("shrinks", "100Mi", "300Mi")});
  CHECK(victims(active, memory(200_MiB)) == Names{"shrinks"});
  CHECK(victims(active, memory(400_MiB)) == Names{"shrinks", "grows"});
  CHECK_FALSE(pods_to_preempt(critical, active, memory(401_MiB)).has_value());
}

TEST_CASE("what all pods together cannot free is an error in the kubelet's words") {
  const auto active = pods({burstable("a", {{"memory", "100"}, {"cpu", "250m"}}), critical});
  CHECK(error_of(pods_to_preempt(critical, active, {})) == "no error");
  CHECK(error_of(pods_to_preempt(critical, active,
                                 {{.resource = "cpu", .quantity = 1000},
                                  {.resource = "pods", .quantity = 1},
                                  {.resource = "memory", .quantity = 101}})) ==
        "no set of running pods found to reclaim resources: [(res: cpu, q: 750), (res: memory, q: 1), ]");
}

}  // namespace evictd::admission::preemption_test
