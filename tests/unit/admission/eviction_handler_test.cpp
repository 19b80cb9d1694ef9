#include "admission/eviction_handler.hpp"

#include <doctest/doctest.h>

#include "fixture/pods.hpp"

namespace evictd::admission::eviction_handler_test {
namespace {

using core::NodeConditions;
using enum core::NodeCondition;
using fixture::container;
using fixture::pod;

Verdict admit(const core::Pod& pod, NodeConditions conditions) {
  const NodeSnapshot node{.conditions = std::move(conditions)};
  return EvictionHandler{}.admit({.pod = pod, .other_pods = {}, .node = node});
}

const auto best_effort = pod("best-effort");
const auto burstable = pod("burstable", {container("main", {{"memory", "100Mi"}})});

core::Pod tolerating(core::Toleration toleration) {
  auto result = best_effort;
  result.tolerations = {std::move(toleration)};
  return result;
}

}  // namespace

TEST_CASE("a node without pressure admits every pod") { CHECK(admit(best_effort, {}) == Verdict::admit()); }

TEST_CASE("under memory pressure alone a BestEffort pod is rejected in the kubelet's words, a Burstable one admitted") {
  CHECK(admit(best_effort, {MemoryPressure}) ==
        Verdict::reject("Evicted", "The node had condition: [MemoryPressure]. "));
  CHECK(admit(burstable, {MemoryPressure}).admitted);
}

TEST_CASE("under memory pressure alone a BestEffort pod that tolerates its taint is admitted") {
  CHECK(admit(tolerating({.key = "node.kubernetes.io/memory-pressure", .op = "Exists", .value = "", .effect = ""}),
              {MemoryPressure})
            .admitted);
  CHECK(admit(tolerating({.key = "", .op = "Exists", .value = "", .effect = ""}), {MemoryPressure}).admitted);
  CHECK_FALSE(
      admit(
          tolerating({.key = "node.kubernetes.io/memory-pressure", .op = "Exists", .value = "", .effect = "NoExecute"}),
          {MemoryPressure})
          .admitted);
}

TEST_CASE("an ephemeral-storage request does not make a pod Burstable") {
  CHECK_FALSE(admit(pod("a", {container("main", {{"ephemeral-storage", "1Gi"}})}), {MemoryPressure}).admitted);
}

TEST_CASE("disk or process id pressure rejects whatever is not critical") {
  const auto tolerant = tolerating({.key = "", .op = "Exists", .value = "", .effect = ""});
  for (const auto& conditions : {NodeConditions{DiskPressure}, NodeConditions{PidPressure}}) {
    CHECK_FALSE(admit(burstable, conditions).admitted);
    CHECK_FALSE(admit(tolerant, conditions).admitted);
  }
  CHECK(admit(burstable, {PidPressure}).message == "The node had condition: [PIDPressure]. ");
}

TEST_CASE("memory pressure among others rejects what it alone would admit, and all conditions are named") {
  CHECK(admit(burstable, {MemoryPressure, DiskPressure}) ==
        Verdict::reject("Evicted", "The node had condition: [DiskPressure MemoryPressure]. "));
}

TEST_CASE("critical pods are admitted under any pressure") {
  const NodeConditions all{MemoryPressure, DiskPressure, PidPressure};
  CHECK(admit(fixture::with_priority(best_effort, 2'000'000'000), all).admitted);
  CHECK(admit(fixture::with_annotation(best_effort, "kubernetes.io/config.source", "file"), all).admitted);
  CHECK(admit(fixture::with_annotation(best_effort, "kubernetes.io/config.mirror", "x"), all).admitted);
  CHECK_FALSE(admit(fixture::with_priority(best_effort, 1'999'999'999), all).admitted);
}

}  // namespace evictd::admission::eviction_handler_test
