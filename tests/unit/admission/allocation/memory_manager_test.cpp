#include "admission/allocation/memory_manager.hpp"

#include <doctest/doctest.h>

#include "fixture/machines.hpp"

namespace evictd::admission::memory_manager_test {
namespace {

using namespace fixture;

std::string why_not(const AllocationSettings& settings) { return error_of(MemoryManager::make(settings)); }

MemoryBlock memory(NumaNodes nodes, std::int64_t bytes) {
  return {.numa_nodes = std::move(nodes), .type = "memory", .bytes = bytes};
}

Allocations held(NumaNodes nodes, std::int64_t bytes) {
  return {{"other", {{"main", {.memory = {memory(std::move(nodes), bytes)}}}}}};
}

/// What the pod's containers are given; the message of the refusal otherwise.
std::expected<PodAllocation, std::string> allocate(const MemoryManager& manager, const core::Pod& pod,
                                                   const Allocations& others, const Hint& hint) {
  const auto round = manager.begin(pod, others);
  for (const auto& turn : turns(pod))
    if (auto given = round->allocate(turn, hint); !given) return std::unexpected(given.error().message);
  PodAllocation result;
  round->hand_over(result);
  return result;
}

std::vector<MemoryBlock> of_main(const MemoryManager& manager, const core::Pod& pod, const Allocations& others,
                                 const Hint& hint) {
  return allocate(manager, pod, others, hint).value().at("main").memory;
}

Hint at(NumaNodes nodes, bool preferred) { return {.affinity = NumaMask{nodes}, .preferred = preferred}; }

}  // namespace

TEST_CASE("without the static policy there is no memory manager") {
  CHECK(value_of(MemoryManager::make({})) == nullptr);
}

TEST_CASE("what keeps the kubelet's memory manager from starting keeps this one") {
  auto wrong = all_static("none");
  wrong.memory_policy = "static";
  CHECK(why_not(wrong) == "memoryManagerPolicy: unknown policy: \"static\"");
  wrong = all_static("none");
  wrong.topology = {};
  CHECK(why_not(wrong) == "memoryManagerPolicy: the machine's topology is not known");
  wrong = all_static("none");
  wrong.reserved["memory"] = quantity("3Gi");
  CHECK(why_not(wrong) ==
        "reservedMemory: the total amount \"2Gi\" of type \"memory\" is not equal to the value \"3Gi\" determined by "
        "Node Allocatable "
        "feature");
  wrong = all_static("none");
  wrong.reserved_memory[0].limits["hugepages-2Mi"] = quantity("4Mi");
  CHECK(why_not(wrong) ==
        "reservedMemory: the total amount \"4Mi\" of type \"hugepages-2Mi\" is not equal to the value \"0\" determined "
        "by Node "
        "Allocatable feature");
  wrong = all_static("none");
  wrong.reserved_memory[1].numa_node = 2;
  CHECK(
      why_not(wrong) ==
      "reservedMemory: the reserved memory configuration references a NUMA node 2 that does not exist on this machine");
  wrong = all_static("none");
  wrong.reserved_memory.clear();
  wrong.reserved.erase("memory");
  CHECK(why_not(wrong) == "reservedMemory: you should specify the system reserved memory");
}

TEST_CASE("containers can have what is neither reserved nor set aside for huge pages") {
  auto settings = all_static("none");
  settings.topology.numa_nodes[1].memory["hugepages-2Mi"] = 2_GiB;
  const auto manager = value_of(MemoryManager::make(settings));
  CHECK(manager->allocatable() ==
        std::map<int, MemoryAmounts>{{0, {{"memory", 9_GiB}}}, {1, {{"memory", 7_GiB}, {"hugepages-2Mi", 2_GiB}}}});
  CHECK(manager->basis().at("numaNode1.hugepages-2Mi") == "2147483648 bytes, 0 of them reserved");
  CHECK(manager->basis().at("numaNode0.memory") == "10737418240 bytes, 1073741824 of them reserved");
}

TEST_CASE("a place is the policy's, or else the best there is; one that is too small is widened") {
  const auto manager = value_of(MemoryManager::make(all_static("none")));
  const auto small = pod("a", {guaranteed("main", "1", "2Gi")});
  const auto large = pod("a", {guaranteed("main", "1", "12Gi")});
  struct Case {
    const char* what;
    core::Pod pod;
    Allocations others;
    Hint hint;
    NumaNodes expected;
  };
  const std::vector<Case> cases{
      {"the policy's place", small, {}, at({1}, true), {1}},
      {"anywhere: the lowest node", small, {}, {}, {0}},
      {"anywhere: the first with room", small, held({0}, 8_GiB), {}, {1}},
      {"anywhere, but two nodes are needed", large, {}, {}, {0, 1}},
      {"too small: widened", large, {}, at({0}, false), {0, 1}},
      {"inside a group: widened to it", small, held({0, 1}, 12_GiB), at({0}, false), {0, 1}},
      {"the group itself", small, held({0, 1}, 12_GiB), {}, {0, 1}},
  };
  for (const auto& [what, pod, others, hint, expected] : cases) {
    CAPTURE(what);
    const auto blocks = of_main(*manager, pod, others, hint);
    CHECK(blocks == std::vector{memory(expected, pod.containers[0].resources.requests.at("memory").value())});
  }
}

TEST_CASE("what cannot be had is refused in the kubelet's words") {
  const auto manager = value_of(MemoryManager::make(all_static("none")));
  const auto message = [&](const char* request, const Allocations& others, const Hint& hint) {
    return allocate(*manager, pod("a", {guaranteed("main", "1", request)}), others, hint).error();
  };
  const auto sentence = [](const std::string& error) {
    return "Allocate failed due to [memorymanager] " + error + ", which is unexpected";
  };
  CHECK(message("19Gi", {}, {}) ==
        sentence("failed to get the default NUMA affinity, no NUMA nodes with enough memory is available"));
  CHECK(message("2Gi", held({0, 1}, 4_GiB), {.preferred = true}) ==
        sentence("failed to find the default preferred hint"));
  CHECK(message("9Gi", held({0}, 4_GiB), at({0}, true)) ==
        sentence("failed to find NUMA nodes to extend the current topology hint"));
  CHECK(message("12Gi", held({0}, 1_GiB), at({0, 1}, false)) ==
        sentence("preferred hint violates NUMA node allocation"));
  CHECK(message("2Gi", held({0, 1}, 4_GiB), at({0}, true)) == sentence("failed to find the extended preferred hint"));
}

TEST_CASE("pods that are not Guaranteed, or have pod-level resources, are given no memory of their own") {
  const auto manager = value_of(MemoryManager::make(all_static("none")));
  auto burstable = pod("a", {container("main", {{"memory", "1Gi"}})});
  auto pod_level = pod("a", {guaranteed("main", "1", "1Gi")});
  pod_level.resources = pod_level.containers[0].resources;
  for (const auto& pod : {burstable, pod_level}) {
    CHECK(allocate(*manager, pod, {}, {}).value().empty());
    CHECK(manager->begin(pod, {})->pod_hints().empty());
    CHECK(manager->begin(pod, {})->hints(turns(pod)[0]).empty());
  }
}

TEST_CASE("huge pages come from where the memory comes from, and from their own store") {
  auto settings = all_static("none");
  settings.topology.numa_nodes[1].memory["hugepages-2Mi"] = 1_GiB;
  const auto manager = value_of(MemoryManager::make(settings));
  auto asking = pod("a", {wanting(guaranteed("main", "1", "1Gi"), "hugepages-2Mi", "512Mi")});
  const auto hints = manager->begin(asking, {})->pod_hints();
  REQUIRE(hints.size() == 2);
  CHECK(hints.at("memory") == std::vector{at({1}, true), at({0, 1}, false)});
  CHECK(hints.at("hugepages-2Mi") == hints.at("memory"));
  CHECK(of_main(*manager, asking, {}, {}) ==
        std::vector{MemoryBlock{.numa_nodes = {1}, .type = "hugepages-2Mi", .bytes = 512_MiB}, memory({1}, 1_GiB)});
}

TEST_CASE("what init containers had is used again, and counted once; a sidecar's is not") {
  const auto manager = value_of(MemoryManager::make(all_static("none")));
  auto asking = with_init(pod("a", {guaranteed("main", "1", "8Gi")}),
                          {guaranteed("first", "1", "6Gi"), as_sidecar(guaranteed("beside", "1", "1Gi"))});
  const auto given = allocate(*manager, asking, {}, at({0}, true)).value();
  CHECK(given.at("first").memory == std::vector{memory({0}, 0)});
  CHECK(given.at("beside").memory == std::vector{memory({0}, 1_GiB)});
  CHECK(given.at("main").memory == std::vector{memory({0}, 8_GiB)});

  // The rest of what an init container had stays with the pod.
  asking.containers = {guaranteed("main", "1", "2Gi")};
  CHECK(allocate(*manager, asking, {}, at({0}, true)).value().at("first").memory == std::vector{memory({0}, 3_GiB)});

  // The sidecar's gigabyte is gone: nine are not left.
  asking.containers = {guaranteed("main", "1", "9Gi")};
  CHECK_FALSE(allocate(*manager, asking, {}, at({0}, true)).has_value());
}

TEST_CASE("allocations that cannot be true are told") {
  const auto manager = value_of(MemoryManager::make(all_static("none")));
  CHECK(manager->check(held({0}, 9_GiB)).has_value());
  CHECK(error_of(manager->check(held({0}, 10_GiB))) ==
        "pod other, container main: NUMA nodes 0 do not have 10737418240 bytes of memory");
  CHECK(error_of(manager->check(held({2}, 1))) == "pod other, container main: NUMA nodes 2 are not all there");
  auto both = held({0}, 1);
  both["pair"]["main"].memory = {memory({0, 1}, 1)};
  CHECK(error_of(manager->check(both)) == "pod pair, container main: NUMA nodes 0-1 are in use otherwise");
}

}  // namespace evictd::admission::memory_manager_test
