#include "core/eviction_message.hpp"

#include <doctest/doctest.h>

#include "fixture/node.hpp"

namespace evictd::core::eviction_message_test {
namespace {

using enum Signal;
using fixture::container;
using fixture::pod;
using fixture::share;
using fixture::threshold;
using fixture::operator""_GiB;
using fixture::operator""_MiB;

ContainerUsage memory(std::string name, std::int64_t working_set) {
  return {.name = std::move(name), .working_set = working_set};
}

ContainerUsage disk(std::string name, std::optional<std::int64_t> rootfs, std::optional<std::int64_t> logs) {
  return {.name = std::move(name), .rootfs = {.bytes = rootfs}, .logs = {.bytes = logs}};
}

PodUsage usage(std::vector<ContainerUsage> containers) {
  PodUsage result;
  result.containers = std::move(containers);
  return result;
}

std::string text(const Threshold& acted, std::int64_t available, std::int64_t capacity) {
  return eviction_message(acted, {.available = available, .capacity = capacity}, pod("a"), std::nullopt).text;
}

const auto low_memory = threshold(MemoryAvailable, "2Gi");
const Observation half_a_gib{.available = 512_MiB, .capacity = 4_GiB};

}  // namespace

TEST_CASE("a pod without stats is told the resource, the threshold and what was available, and nothing more") {
  const auto message = eviction_message(low_memory, half_a_gib, pod("a"), std::nullopt);
  CHECK(message.text == "The node was low on resource: memory. Threshold quantity: 2Gi, available: 512Mi. ");
  CHECK(message.annotations.empty());
}

TEST_CASE("the resource is named by what the signal measures, and counts print as decimals") {
  CHECK(text(threshold(AllocatableMemoryAvailable, "1Gi"), 0, 4_GiB) ==
        "The node was low on resource: memory. Threshold quantity: 1Gi, available: 0. ");
  CHECK(text(threshold(NodefsAvailable, "10G"), 1500_MiB, 4_GiB) ==
        "The node was low on resource: ephemeral-storage. Threshold quantity: 10G, available: 1500Mi. ");
  CHECK(text(threshold(ImagefsInodesFree, "5k"), 2048, 100'000) ==
        "The node was low on resource: inodes. Threshold quantity: 5k, available: 2048. ");
  CHECK(text(threshold(PidAvailable, "100"), -5, 1000) ==
        "The node was low on resource: pids. Threshold quantity: 100, available: -5. ");
}

TEST_CASE("a percentage is told as what it came to, with binary suffixes whatever it counts") {
  CHECK(text(threshold(NodefsAvailable, share(50)), 1_GiB, 10_GiB).find("Threshold quantity: 5Gi,") !=
        std::string::npos);
  CHECK(text(threshold(NodefsInodesFree, share(50)), 0, 4096).find("Threshold quantity: 2Ki,") != std::string::npos);
}

TEST_CASE("every container above its own request is told, and annotated") {
  const auto victim = pod(
      "a", {container("main", {{"memory", "1Gi"}}), container("greedy", {{"memory", "100Mi"}}), container("helper")});
  const auto message = eviction_message(
      low_memory, half_a_gib, victim,
      usage({memory("main", 1_GiB), memory("greedy", 300_MiB), memory("unknown", 5_GiB), memory("helper", 1_MiB)}));
  CHECK(message.text ==
        "The node was low on resource: memory. Threshold quantity: 2Gi, available: 512Mi. "
        "Container greedy was using 300Mi, request is 100Mi, has larger consumption of memory. "
        "Container helper was using 1Mi, request is 0, has larger consumption of memory. ");
  CHECK(message.annotations == Annotations{{"offending_containers", "greedy,helper"},
                                           {"offending_containers_usage", "300Mi,1Mi"},
                                           {"starved_resource", "memory"}});
}

TEST_CASE("a pod of which no container is above its request is annotated all the same") {
  const auto message =
      eviction_message(low_memory, half_a_gib, pod("a", {container("main", {{"memory", "1Gi"}})}), usage({}));
  CHECK(message.text == "The node was low on resource: memory. Threshold quantity: 2Gi, available: 512Mi. ");
  CHECK(message.annotations ==
        Annotations{{"offending_containers", ""}, {"offending_containers_usage", ""}, {"starved_resource", "memory"}});
}

TEST_CASE("init containers are told too") {
  auto victim = pod("a");
  victim.init_containers = {container("setup")};
  CHECK(eviction_message(low_memory, half_a_gib, victim, usage({memory("setup", 1_GiB)}))
            .annotations.at("offending_containers") == "setup");
}

TEST_CASE("for disk a container's writable layer and logs count together, if both are known") {
  const auto victim = pod("a", {container("x", {{"ephemeral-storage", "1Gi"}}), container("y"), container("z")});
  const auto message = eviction_message(
      threshold(NodefsAvailable, "2Gi"), half_a_gib, victim,
      usage({disk("x", 1_GiB, 1_MiB), disk("y", 5_GiB, std::nullopt), disk("z", std::nullopt, 5_GiB)}));
  CHECK(message.text ==
        "The node was low on resource: ephemeral-storage. Threshold quantity: 2Gi, available: 512Mi. "
        "Container x was using 1025Mi, request is 1Gi, has larger consumption of ephemeral-storage. ");
}

TEST_CASE("for inodes and process ids no container is told") {
  for (const auto signal : {NodefsInodesFree, PidAvailable}) {
    auto used = usage({disk("main", 5_GiB, 5_GiB)});
    used.containers[0].working_set = 5_GiB;
    const auto message = eviction_message(threshold(signal, "5"), {.available = 1, .capacity = 10}, pod("a"), used);
    CHECK(message.text.ends_with("Threshold quantity: 5, available: 1. "));
    CHECK(message.annotations.at("offending_containers").empty());
    CHECK(message.annotations.at("starved_resource") == resource_of(signal));
  }
}

TEST_CASE("a request is printed as it was written") {
  const auto victim = pod("a", {container("x", {{"memory", "100.035k"}})});
  CHECK(
      eviction_message(low_memory, half_a_gib, victim, usage({memory("x", 1_GiB)})).text.find("request is 100.035k,") !=
      std::string::npos);
}

TEST_CASE("with a pod-level memory request the pod itself is told first, above it or not") {
  auto victim = pod("a", {container("x", {{"memory", "1Mi"}})});
  victim.resources = ResourceRequirements{.requests = fixture::amounts({{"memory", "5Gi"}}), .limits = {}};
  auto used = usage({memory("x", 1_GiB)});
  used.working_set = 2_GiB;
  const auto message = eviction_message(low_memory, half_a_gib, victim, used);
  CHECK(message.text ==
        "The node was low on resource: memory. Threshold quantity: 2Gi, available: 512Mi. "
        "Pod a was using 2Gi, request is 5Gi, has larger consumption of memory. "
        "Container x was using 1Gi, request is 1Mi, has larger consumption of memory. ");
  CHECK(message.annotations.at("offending_pod") == "a");
  CHECK(message.annotations.at("offending_pod_usage") == "2Gi");

  const auto disk_message = eviction_message(threshold(NodefsAvailable, "2Gi"), half_a_gib, victim, used);
  CHECK_FALSE(disk_message.annotations.contains("offending_pod"));
}

}  // namespace evictd::core::eviction_message_test
