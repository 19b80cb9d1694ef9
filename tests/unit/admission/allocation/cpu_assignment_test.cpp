#include "admission/allocation/cpu_assignment.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "admission/number_list.hpp"
#include "fixture/random.hpp"
#include "fixture/result.hpp"

namespace evictd::admission::cpu_assignment_test {
namespace {

using fixture::error_of;
using fixture::Random;
using fixture::seeds;
using fixture::value_of;

CpuSet cpus(std::string_view list) { return value_of(parse_number_list(list)); }

std::string packed(const MachineTopology& machine, std::string_view free, int count, CpuPreferences preferences = {}) {
  return print_number_list(value_of(take_packed(machine, cpus(free), count, preferences)));
}

std::string distributed(const MachineTopology& machine, std::string_view free, int count, int group_size) {
  return print_number_list(value_of(take_distributed(machine, cpus(free), count, group_size)));
}

/// Eight CPUs in four cores: 0 and 4 are one, and so on.
MachineTopology one_socket() { return value_of(make_topology({.cores_per_numa_node = 4, .threads_per_core = 2})); }

/// Twelve CPUs, dealt out to two sockets in turn: socket 0 has the even ones, 0 and 6 are a core.
MachineTopology two_sockets_in_turn() {
  MachineTopology machine{.cpus = {}, .numa_nodes = {{.id = 0}, {.id = 1}}};
  for (int id = 0; id < 12; ++id)
    machine.cpus.push_back({.id = id, .core = id % 6, .socket = id % 2, .numa_node = id % 2, .uncore_cache = id % 2});
  return value_of(checked(machine));
}

/// Two sockets of two NUMA nodes of four cores: node 0 has CPUs 0-3 and 16-19.
MachineTopology four_nodes() {
  return value_of(
      make_topology({.sockets = 2, .numa_nodes_per_socket = 2, .cores_per_numa_node = 4, .threads_per_core = 2}));
}

/// One socket with four caches of four cores without second threads.
MachineTopology four_caches() {
  return value_of(make_topology({.cores_per_numa_node = 16, .uncore_caches_per_numa_node = 4}));
}

}  // namespace

TEST_CASE("CPUs are packed: sockets, then cores, then threads of cores that are in use") {
  struct Case {
    const char* what;
    MachineTopology machine;
    const char* free;
    int count;
    const char* expected;
  };
  const std::vector<Case> cases{
      {"one of an empty socket", one_socket(), "0-7", 1, "0"},
      {"one: the core that is in use already", one_socket(), "1,3,5-7", 1, "6"},
      {"two: a core", one_socket(), "0-7", 2, "0,4"},
      {"two: the only free core", one_socket(), "0-3,6", 2, "2,6"},
      {"three: a core and a thread of the fullest", one_socket(), "0,1,3-5,7", 3, "0-1,4"},
      {"all", one_socket(), "0-7", 8, "0-7"},
      {"none", one_socket(), "0-7", 0, ""},
      {"one: from the fuller socket", two_sockets_in_turn(), "1-5,7-11", 1, "2"},
      {"a socket's worth", two_sockets_in_turn(), "0-11", 6, "0,2,4,6,8,10"},
      {"a socket's worth where only the second is free", two_sockets_in_turn(), "1-11", 6, "1,3,5,7,9,11"},
      {"a socket and a core", two_sockets_in_turn(), "0-11", 8, "0-2,4,6-8,10"},
      {"a NUMA node, not half a socket", four_nodes(), "1-31", 8, "4-7,20-23"},
      {"a socket, not two NUMA nodes of different ones", four_nodes(), "1-31", 16, "8-15,24-31"},
      {"cores of the node that is in use", four_nodes(), "0-15,18-31", 4, "2-3,18-19"},
  };
  for (const auto& [what, machine, free, count, expected] : cases) {
    CAPTURE(what);
    CHECK(packed(machine, free, count) == expected);
  }
}

TEST_CASE("too few CPUs are told as the kubelet tells it") {
  CHECK(error_of(take_packed(one_socket(), cpus("0-2"), 4)) == "not enough cpus available to satisfy request");
  CHECK(error_of(take_distributed(one_socket(), cpus("0-2"), 4, 1)) == "not enough cpus available to satisfy request");
}

TEST_CASE("CPUs spread across cores are taken by number, socket by socket") {
  CHECK(packed(one_socket(), "0-7", 4, {.spread_across_cores = true}) == "0-3");
  CHECK(packed(two_sockets_in_turn(), "1-11", 3, {.spread_across_cores = true}) == "2,4,6");
}

TEST_CASE("CPUs aligned to uncore caches come from as few of them as can be") {
  const CpuPreferences aligned{.align_by_uncore_cache = true};
  CHECK(packed(four_caches(), "1-15", 10, aligned) == "1-2,4-11");
  CHECK(packed(four_caches(), "1-15", 4, aligned) == "4-7");
  CHECK(packed(four_caches(), "0-1,4-5,8-11", 3, aligned) == "8-10");
  CHECK(packed(four_caches(), "0-1,4-5,8-11", 3) == "0-1,4");
  const auto threads =
      value_of(make_topology({.cores_per_numa_node = 4, .threads_per_core = 2, .uncore_caches_per_numa_node = 2}));
  CHECK(packed(threads, "0,2-7", 3, aligned) == "0,4-5");
  CHECK(packed(threads, "0,2-3,5-7", 3, aligned) == "2-3,6");
}

TEST_CASE("CPUs are distributed in equal parts over as few NUMA nodes as can be") {
  CHECK(distributed(four_nodes(), "0-31", 6, 1) == "0-2,16-18");
  CHECK(distributed(four_nodes(), "0-31", 12, 1) == "0-2,4-6,16-18,20-22");
  CHECK(distributed(four_nodes(), "0-31", 12, 2) == "0-2,4-6,16-18,20-22");
  CHECK(distributed(four_nodes(), "0-31", 24, 1) == "0-11,16-27");
  // Ten cannot be halved by cores: the odd core comes from where it leaves the machine balanced.
  CHECK(distributed(four_nodes(), "0-31", 10, 2) == "0-2,4-5,16-18,20-21");
  // Two nodes have three CPUs each, which is not half of what is needed.
  CHECK(distributed(four_nodes(), "0-2,4-6,8-15,24-31", 12, 1) == "8-10,12-14,24-26,28-30");
  // What cannot be handed out in whole cores is packed.
  CHECK(distributed(one_socket(), "0-7", 3, 2) == "0-1,4");
}

TEST_CASE("property: exactly so many CPUs are taken, and only free ones") {
  for (const auto seed : seeds(500)) {
    CAPTURE(seed);
    Random random{seed};
    const auto machine = value_of(make_topology({.sockets = static_cast<int>(random.between(1, 3)),
                                                 .numa_nodes_per_socket = static_cast<int>(random.between(1, 3)),
                                                 .cores_per_numa_node = 2 * static_cast<int>(random.between(1, 3)),
                                                 .threads_per_core = static_cast<int>(random.between(1, 3)),
                                                 .uncore_caches_per_numa_node = random.pick({1, 2})}));
    CpuSet free;
    const auto share = static_cast<int>(random.between(10, 100));
    for (const auto& cpu : machine.cpus)
      if (random.chance(share)) free.insert(cpu.id);
    const auto count = static_cast<int>(random.between(0, static_cast<std::int64_t>(free.size())));
    const CpuPreferences preferences{.spread_across_cores = random.chance(30),
                                     .align_by_uncore_cache = random.chance(30)};
    const auto group = random.chance(50) ? 1 : 2;
    for (const auto& taken :
         {take_packed(machine, free, count, preferences), take_distributed(machine, free, count, group, preferences)}) {
      REQUIRE(taken.has_value());
      CHECK(std::ssize(*taken) == count);
      CHECK(std::ranges::includes(free, *taken));
    }
    CHECK_FALSE(take_packed(machine, free, static_cast<int>(free.size()) + 1, preferences).has_value());
  }
}

}  // namespace evictd::admission::cpu_assignment_test
