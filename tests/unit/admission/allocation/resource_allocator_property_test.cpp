#include <doctest/doctest.h>

#include <algorithm>

#include "admission/allocation/resource_allocator.hpp"
#include "fixture/machines.hpp"
#include "fixture/random.hpp"

namespace evictd::admission::resource_allocator_property_test {
namespace {

using namespace fixture;

struct World {
  AllocationSettings settings;
  ResourceAllocator allocator;
};

std::string one_of_options(Random& random) {
  return random.pick<std::string>({"", "full-pcpus-only", "distribute-cpus-across-numa", "strict-cpu-reservation",
                                   "distribute-cpus-across-cores", "prefer-align-cpus-by-uncorecache"});
}

World any_world(Random& random) {
  auto machine = value_of(make_topology({.sockets = static_cast<int>(random.between(1, 2)),
                                         .numa_nodes_per_socket = static_cast<int>(random.between(1, 2)),
                                         .cores_per_numa_node = static_cast<int>(random.between(1, 4)),
                                         .threads_per_core = static_cast<int>(random.between(1, 2)),
                                         .memory_per_numa_node = {{"memory", 10_GiB}, {"hugepages-2Mi", 2_GiB}}}));
  const auto nodes = static_cast<std::int64_t>(machine.numa_nodes.size());
  auto settings = all_static(random.pick<std::string>({"none", "best-effort", "restricted", "single-numa-node"}),
                             std::move(machine));
  settings.topology_scope = random.pick<std::string>({"container", "pod"});
  settings.reserved["cpu"] = quantity("1");
  if (const auto option = one_of_options(random); !option.empty()) settings.cpu_options[option] = "true";
  for (auto left = random.between(0, 6); left > 0; --left) {
    Device device{.resource = random.pick<std::string>({"gpu", "nic"}), .id = std::to_string(left)};
    while (random.chance(50)) device.numa_nodes = {static_cast<int>(random.between(0, nodes - 1))};
    settings.devices.push_back(device);
  }
  return {.settings = settings, .allocator = value_of(ResourceAllocator::make(settings))};
}

core::Container any_container(Random& random, const std::string& name) {
  const auto cpu = std::to_string(random.between(1, 5));
  const auto memory = std::to_string(random.between(1, 9)) + "Gi";
  auto result = guaranteed(name, random.chance(85) ? cpu.c_str() : "500m", memory.c_str());
  if (random.chance(20)) result = wanting(result, "hugepages-2Mi", "1Gi");
  for (const auto* resource : {"gpu", "nic"})
    if (random.chance(20)) result = wanting(result, resource, std::to_string(random.between(1, 3)));
  if (random.chance(10)) result.resources.limits.erase("cpu");  // and the whole pod is Burstable
  return result;
}

core::Pod any_pod(Random& random, int number) {
  auto result = pod("p" + std::to_string(number), {any_container(random, "main")});
  if (random.chance(30)) result.containers.push_back(any_container(random, "other"));
  for (auto left = random.between(-1, 2); left > 0; --left) {
    auto init = any_container(random, "init" + std::to_string(left));
    init.restart_always = random.chance(40);
    result.init_containers.push_back(init);
  }
  return result;
}

/// Containers of the pod that can run at the same time: those that stay with each other, an init container with the
/// sidecars before it.
bool can_meet(const core::Pod& pod, const std::string& a, const std::string& b) {
  const auto index = [&](const std::string& name) {
    return std::ranges::find(pod.init_containers, name, &core::Container::name) - pod.init_containers.begin();
  };
  const auto count = std::ssize(pod.init_containers);
  const auto stays = [&](std::ptrdiff_t i) {
    return i == count || pod.init_containers[static_cast<std::size_t>(i)].restart_always;
  };
  auto first = index(a);
  auto second = index(b);
  if (first > second) std::swap(first, second);
  return stays(first);
}

void check_pod(const World& world, const core::Pod& pod, const PodAllocation& given) {
  for (const auto& turn : turns(pod)) {
    CAPTURE(turn.container.name);
    const auto found = given.find(turn.container.name);
    const auto has = found == given.end() ? ContainerAllocation{} : found->second;
    CHECK(std::ssize(has.cpus) == CpuManager::exclusive_cpus(pod, turn.container));
    for (const auto& [resource, ids] : has.devices)
      CHECK(std::ssize(ids) == turn.container.resources.limits.at(resource).value());
    if (world.settings.topology_policy == "single-numa-node") {
      NumaNodes nodes;
      for (const auto& cpu : world.settings.topology.cpus)
        if (has.cpus.contains(cpu.id)) nodes.insert(cpu.numa_node);
      for (const auto& block : has.memory) nodes.insert(block.numa_nodes.begin(), block.numa_nodes.end());
      CHECK(nodes.size() <= 1);
    }
  }
  for (const auto& [a, has_a] : given)
    for (const auto& [b, has_b] : given) {
      if (a >= b || !can_meet(pod, a, b)) continue;
      CAPTURE(a);
      CAPTURE(b);
      CpuSet both;
      std::ranges::set_intersection(has_a.cpus, has_b.cpus, std::inserter(both, both.end()));
      CHECK(both.empty());
    }
}

/// Nothing is given away twice, nothing that is not there, and no node serves two groups.
void check_node(const World& world, const Allocations& allocations) {
  std::map<int, std::string> cpu_owner;
  std::map<std::string, std::string> device_owner;
  std::map<int, NumaNodes> group;
  std::map<std::pair<NumaNodes, std::string>, std::int64_t> memory;
  for (const auto& [uid, containers] : allocations)
    for (const auto& [name, container] : containers) {
      for (const int cpu : container.cpus) CHECK(cpu_owner.try_emplace(cpu, uid).first->second == uid);
      for (const auto& [resource, ids] : container.devices)
        for (const auto& id : ids) CHECK(device_owner.try_emplace(resource + id, uid).first->second == uid);
      for (const auto& block : container.memory) {
        memory[{block.numa_nodes, block.type}] += block.bytes;
        for (const int node : block.numa_nodes)
          CHECK(group.try_emplace(node, block.numa_nodes).first->second == block.numa_nodes);
      }
    }
  for (const auto& [place, bytes] : memory) {
    const auto nodes = static_cast<std::int64_t>(place.first.size());
    CHECK(bytes <= nodes * (place.second == "memory" ? 7_GiB : 2_GiB));  // 10 - 1 reserved - 2 of huge pages
  }
  const auto shared = world.allocator.shared_cpus(allocations);
  CHECK_FALSE(cpu_owner.contains(0));  // reserved
  for (const auto& cpu : world.settings.topology.cpus) {
    const bool strictly_reserved = cpu.id == 0 && world.settings.cpu_options.contains("strict-cpu-reservation");
    CHECK(shared.contains(cpu.id) == (!cpu_owner.contains(cpu.id) && !strictly_reserved));
  }
  CHECK(world.allocator.check(allocations).has_value());
}

void check_refusal(const World& world, const Refusal& refusal) {
  const auto& policy = world.settings.topology_policy;
  if (refusal.reason == "TopologyAffinityError") {
    CHECK(policy != "none");
    CHECK(policy != "best-effort");
  } else if (refusal.reason == "SMTAlignmentError") {
    CHECK(world.settings.cpu_options.contains("full-pcpus-only"));
  } else {
    CHECK(refusal.reason == "UnexpectedAdmissionError");
  }
}

}  // namespace

TEST_CASE("property: over any sequence of admitting and releasing nothing is given away twice") {
  int admitted = 0;
  for (const auto seed : seeds(400)) {
    CAPTURE(seed);
    Random random{seed};
    const auto world = any_world(random);
    CAPTURE(world.settings.topology_policy);
    CAPTURE(world.settings.topology_scope);
    std::map<std::string, core::Pod> running;
    Allocations allocations;
    for (int step = 0; step < 25; ++step) {
      if (!running.empty() && random.chance(30)) {
        auto leaving = running.begin();
        std::advance(leaving, random.between(0, std::ssize(running) - 1));
        allocations.erase(leaving->first);
        running.erase(leaving);
        continue;
      }
      const auto pod = any_pod(random, step);
      const auto given = world.allocator.allocate(pod, allocations);
      if (!given) {
        check_refusal(world, given.error());
        continue;
      }
      ++admitted;
      check_pod(world, pod, *given);
      running[pod.uid] = pod;
      if (given->empty()) continue;
      allocations[pod.uid] = *given;
      check_node(world, allocations);
      CHECK(world.allocator.allocate(pod, allocations) == *given);
    }
  }
  CHECK(admitted > 1000);
}

TEST_CASE("property: what was released can be had again") {
  for (const auto seed : seeds(200)) {
    CAPTURE(seed);
    Random random{seed};
    const auto world = any_world(random);
    const auto first = any_pod(random, 1);
    const auto alone = world.allocator.allocate(first, {});
    Allocations allocations;
    for (int number = 2; number < 6; ++number) {
      const auto other = any_pod(random, number);
      if (const auto given = world.allocator.allocate(other, allocations)) allocations[other.uid] = *given;
    }
    allocations.clear();
    CHECK(world.allocator.allocate(first, allocations) == alone);
  }
}

TEST_CASE("property: restricted takes what best-effort takes when it is preferred, and refuses the rest") {
  for (const auto seed : seeds(300)) {
    CAPTURE(seed);
    Random random{seed};
    auto world = any_world(random);
    world.settings.topology_policy = "best-effort";
    const auto lenient = value_of(ResourceAllocator::make(world.settings));
    world.settings.topology_policy = "restricted";
    const auto strict = value_of(ResourceAllocator::make(world.settings));
    Allocations allocations;
    for (int number = 0; number < 8; ++number) {
      const auto pod = any_pod(random, number);
      const auto given = lenient.allocate(pod, allocations);
      const auto strictly = strict.allocate(pod, allocations);
      if (strictly) CHECK(given == strictly);
      if (!strictly && given) CHECK(strictly.error().reason == "TopologyAffinityError");
      if (given) allocations[pod.uid] = *given;
    }
  }
}

}  // namespace evictd::admission::resource_allocator_property_test
