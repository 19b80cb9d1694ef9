#include "admission/allocation/resource_allocator.hpp"

#include <doctest/doctest.h>

#include <array>

#include "admission/number_list.hpp"
#include "fixture/machines.hpp"

namespace evictd::admission::resource_allocator_test {
namespace {

using namespace fixture;

const Refusal no_locality{.reason = "TopologyAffinityError",
                          .message = "Resources cannot be allocated with Topology locality"};

ResourceAllocator allocator(const AllocationSettings& settings) { return value_of(ResourceAllocator::make(settings)); }

std::string cpus_of(const PodAllocation& allocation, const std::string& container = "main") {
  return print_number_list(allocation.at(container).cpus);
}

std::string why_not(const AllocationSettings& settings) { return error_of(ResourceAllocator::make(settings)); }

/// Fills so many CPUs of a node, and so much memory.
Allocations used(std::string_view cpus, NumaNodes nodes = {}, std::int64_t bytes = 0) {
  ContainerAllocation main{.cpus = value_of(parse_number_list(cpus))};
  if (!nodes.empty()) main.memory = {{.numa_nodes = std::move(nodes), .type = "memory", .bytes = bytes}};
  return {{"other", {{"main", std::move(main)}}}};
}

}  // namespace

TEST_CASE("without policies nothing is allocated, and no topology is needed") {
  const auto nothing = allocator({});
  CHECK(nothing.allocate(pod("a", {guaranteed("main", "2", "1Gi")}), {}) == PodAllocation{});
  CHECK(nothing.shared_cpus({}).empty());
  CHECK(nothing.basis() == ResourceAllocator::Basis{{"cpuManagerPolicy", "none"}, {"memoryManagerPolicy", "None"}});
}

TEST_CASE("wrong settings are told with their key, where the kubelet would not start") {
  CHECK(why_not({.topology_policy = "strict"}) == "topologyManagerPolicy: unknown policy: \"strict\"");
  CHECK(why_not({.topology_scope = "node"}) == "topologyManagerScope: invalid scope name: \"node\"");
  CHECK(why_not({.topology_policy = "restricted"}) == "topologyManagerPolicy: the machine's topology is not known");
  CHECK(why_not({.topology_options = {{"prefer-closest", "true"}}}) ==
        "topologyManagerPolicyOptions: unknown Topology Manager Policy option: \"prefer-closest\"");
  CHECK(why_not({.topology_options = {{"prefer-closest-numa-nodes", "maybe"}}}) ==
        "topologyManagerPolicyOptions: bad value for option \"prefer-closest-numa-nodes\": \"maybe\" is neither true "
        "nor false");
  CHECK(
      why_not({.topology_options = {{"max-allowable-numa-nodes", "9x"}}}) ==
      "topologyManagerPolicyOptions: unable to convert policy option to integer \"max-allowable-numa-nodes\": \"9x\"");
  CHECK(why_not({.topology_options = {{"max-allowable-numa-nodes", "7"}}}) ==
        "topologyManagerPolicyOptions: the minimum value of \"max-allowable-numa-nodes\" should not be less than 8");
  CHECK(why_not({.cpu_policy = "x"}) == "cpuManagerPolicy: unknown policy: \"x\"");
  CHECK(why_not({.memory_policy = "x"}) == "memoryManagerPolicy: unknown policy: \"x\"");
  CHECK(why_not({.devices = {{.resource = "gpu", .id = "0"}, {.resource = "gpu", .id = "0"}}}) ==
        "admission.devices: device 0 of gpu is named twice");
}

TEST_CASE("more than eight NUMA nodes must be asked for") {
  AllocationSettings settings{.topology_policy = "best-effort", .topology = value_of(make_topology({.sockets = 9}))};
  CHECK(why_not(settings) == "topologyManagerPolicy: unsupported on machines with more than 8 NUMA Nodes");
  settings.topology_options = {{"max-allowable-numa-nodes", "9"}};
  CHECK(why_not(settings) == "no error");
  settings.topology_policy = "none";
  settings.topology_options = {};
  CHECK(why_not(settings) == "no error");
  settings.topology_policy = "best-effort";
  settings.topology = value_of(make_topology({.sockets = 17}));
  settings.topology_options = {{"max-allowable-numa-nodes", "20"}};
  CHECK(why_not(settings) == "topologyManagerPolicy: evictd works out at most 16 NUMA nodes");
  settings.topology_policy = "none";
  CHECK(why_not(settings) == "no error");
  settings.memory_policy = "Static";
  CHECK(why_not(settings) == "memoryManagerPolicy: evictd works out at most 16 NUMA nodes");
}

TEST_CASE("the closest nodes cannot be preferred where no distance is known") {
  AllocationSettings settings{.topology_policy = "best-effort",
                              .topology_options = {{"prefer-closest-numa-nodes", "true"}},
                              .topology = two_nodes()};
  CHECK(why_not(settings) == "no error");
  settings.topology.numa_nodes[1].distances.clear();
  CHECK(why_not(settings) ==
        "topologyManagerPolicy: prefer-closest-numa-nodes: the distances between the NUMA nodes are not known");
}

TEST_CASE("each policy decides on a pod that one node, two nodes or none can hold") {
  struct Case {
    const char* what;
    core::Pod pod;
    Allocations others;
    /// By best-effort, restricted, single-numa-node: the CPUs, or the refusal's reason.
    std::array<const char*, 3> expected;
  };
  constexpr auto refused = "TopologyAffinityError";
  const std::vector<Case> cases{
      {"one node can", pod("a", {guaranteed("main", "4", "2Gi")}), {}, {"1-2,9-10", "1-2,9-10", "1-2,9-10"}},
      {"only the second has the CPUs",
       pod("a", {guaranteed("main", "4", "2Gi")}),
       used("1-2,9-10"),
       {"4-5,12-13", "4-5,12-13", "4-5,12-13"}},
      {"only the second has the memory",
       pod("a", {guaranteed("main", "2", "5Gi")}),
       used("1", {0}, 8_GiB),
       {"4,12", "4,12", "4,12"}},
      {"CPUs here, memory there",
       pod("a", {guaranteed("main", "4", "5Gi")}),
       used("4-7", {0}, 8_GiB),
       {"12-15", "12-15", "12-15"}},
      {"two nodes are needed",
       pod("a", {guaranteed("main", "10", "12Gi")}),
       {},
       {"1,4-7,9,12-15", "1,4-7,9,12-15", refused}},
      {"one would do, but none has so many left",
       pod("a", {guaranteed("main", "5", "1Gi")}),
       used("1-2,4-5,9-10,12-13"),
       {"3,6-7,11,14", refused, refused}},
  };
  const std::array<const char*, 3> policies{"best-effort", "restricted", "single-numa-node"};
  for (const auto& [what, pod, others, expected] : cases)
    for (std::size_t i = 0; i < policies.size(); ++i) {
      CAPTURE(what);
      CAPTURE(policies[i]);
      const auto given = allocator(all_static(policies[i])).allocate(pod, others);
      CHECK((given ? cpus_of(*given) : given.error().reason) == expected[i]);
      if (!given) CHECK(given.error() == no_locality);
    }
}

TEST_CASE("CPUs that are not there are no fault of the topology where nobody minds it") {
  auto settings = all_static("none");
  settings.memory_policy = "None";
  CHECK(allocator(settings).allocate(pod("a", {guaranteed("main", "15", "1Gi")}), {}).error() ==
        Refusal{.reason = "UnexpectedAdmissionError",
                .message = "Allocate failed due to not enough cpus available to satisfy request, "
                           "which is unexpected"});
}

TEST_CASE("memory that is not there is unexpected under every policy, as with the kubelet") {
  for (const auto* policy : {"none", "best-effort", "restricted", "single-numa-node"}) {
    CAPTURE(policy);
    const auto refused = allocator(all_static(policy)).allocate(pod("a", {guaranteed("main", "2", "20Gi")}), {});
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().reason == "UnexpectedAdmissionError");
    CHECK(refused.error().message.starts_with("Allocate failed due to [memorymanager] failed to "));
  }
}

TEST_CASE("whole cores or nothing") {
  auto settings = all_static("none");
  settings.cpu_options = {{"full-pcpus-only", "true"}};
  const auto strict = allocator(settings);
  CHECK(strict.allocate(pod("a", {guaranteed("main", "3", "1Gi")}), {}).error() ==
        Refusal{.reason = "SMTAlignmentError",
                .message = "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2"});
  CHECK(cpus_of(strict.allocate(pod("a", {guaranteed("main", "4", "1Gi")}), {}).value()) == "1-2,9-10");
  CHECK(strict.allocate(pod("a", {guaranteed("main", "16", "1Gi")}), {}).error() ==
        Refusal{.reason = "SMTAlignmentError",
                .message =
                    "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 14, requested "
                    "CPUs = 16, CPUs per core = 2"});
  // The thread beside a reserved one is no part of a whole core.
  settings.reserved["cpu"] = quantity("1");
  CHECK(allocator(settings).allocate(pod("a", {guaranteed("main", "16", "1Gi")}), {}).error().message ==
        "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 14, requested CPUs = 16, CPUs "
        "per core = 2");
}

TEST_CASE("devices pull CPUs and memory to where they lie") {
  auto settings = all_static("single-numa-node");
  settings.devices = {{.resource = "example.com/nic", .id = "0", .numa_nodes = {1}}};
  const auto asking = pod("a", {wanting(guaranteed("main", "2", "1Gi"), "example.com/nic", "1")});
  const auto given = allocator(settings).allocate(asking, {}).value();
  CHECK(cpus_of(given) == "4,12");
  CHECK(given.at("main").memory.front().numa_nodes == NumaNodes{1});
  CHECK(given.at("main").devices.at("example.com/nic") == std::set<std::string>{"0"});
  CHECK(allocator(settings).allocate(asking, used("4-7,12-15")).error() == no_locality);
}

TEST_CASE("devices are given to any pod, with no policy at all") {
  const auto only_devices = allocator({.devices = {{.resource = "example.com/nic", .id = "0"}}});
  const auto asking = pod("a", {wanting(container("main"), "example.com/nic", "1")});
  const auto given = only_devices.allocate(asking, {}).value();
  CHECK(given.at("main") == ContainerAllocation{.devices = {{"example.com/nic", {"0"}}}});
  CHECK(only_devices.allocate(pod("b", asking.containers), {{"a", given}}).error() ==
        Refusal{.reason = "UnexpectedAdmissionError",
                .message = "Allocate failed due to requested number of devices unavailable for example.com/nic. "
                           "Requested: 1, Available: 0, which is unexpected"});
}

TEST_CASE("the pod's scope puts its containers on the same nodes, the container's each where it fits") {
  auto settings = all_static("single-numa-node");
  const auto asking = pod("a", {guaranteed("main", "4", "1Gi"), guaranteed("other", "4", "1Gi")});
  auto given = allocator(settings).allocate(asking, {}).value();
  CHECK(cpus_of(given) == "1-2,9-10");
  CHECK(cpus_of(given, "other") == "4-5,12-13");

  settings.topology_scope = "pod";
  given = allocator(settings).allocate(asking, {}).value();
  CHECK(cpus_of(given) == "4-5,12-13");
  CHECK(cpus_of(given, "other") == "6-7,14-15");
  CHECK(allocator(settings).allocate(asking, used("4")).error() == no_locality);
}

TEST_CASE("init containers leave their CPUs to those that follow, sidecars do not") {
  auto settings = all_static("single-numa-node");
  for (const auto* scope : {"container", "pod"}) {
    CAPTURE(scope);
    settings.topology_scope = scope;
    const auto asking = with_init(pod("a", {guaranteed("main", "4", "1Gi")}),
                                  {guaranteed("first", "6", "1Gi"), as_sidecar(guaranteed("beside", "2", "1Gi"))});
    const auto given = allocator(settings).allocate(asking, used("5")).value();
    CHECK(cpus_of(given, "first") == "1-3,9-11");
    CHECK(cpus_of(given, "beside") == "1,9");
    CHECK(cpus_of(given) == "2-3,10-11");
  }
}

TEST_CASE("a pod that has something is given the same again") {
  for (const auto* policy : {"none", "best-effort", "restricted", "single-numa-node"}) {
    CAPTURE(policy);
    const auto some = allocator(all_static(policy));
    const auto asking = pod("a", {guaranteed("main", "4", "1Gi"), guaranteed("fraction", "500m", "1Gi")});
    auto allocations = used("3-5");
    const auto given = some.allocate(asking, allocations).value();
    allocations["a"] = given;
    CHECK(some.allocate(asking, allocations) == given);
    CHECK(given.at("fraction").cpus.empty());
  }
}

TEST_CASE("a pod that has something else than it asks for is refused as the kubelet does it") {
  auto settings = all_static("restricted");
  settings.devices = {{.resource = "gpu", .id = "0"}, {.resource = "gpu", .id = "1"}};
  const auto asking = pod("a", {wanting(guaranteed("main", "2", "1Gi"), "gpu", "2")});
  Allocations held{{"a", {{"main", {.cpus = {1, 9}, .devices = {{"gpu", {"0"}}}}}}}};
  CHECK(allocator(settings).allocate(asking, held).error() ==
        Refusal::unexpected("pod \"a\" container \"main\" changed request for resource \"gpu\" from 1 to 2"));
  held["a"]["main"] = {.cpus = {1}};
  CHECK(allocator(settings).allocate(asking, held).error() == no_locality);
  settings.topology_policy = "best-effort";
  CHECK(allocator(settings).allocate(asking, held) == held["a"]);
}

TEST_CASE("what pods had that are gone is given back") {
  const auto some = allocator(all_static("best-effort"));
  const auto asking = pod("a", {guaranteed("main", "14", "1Gi")});
  Allocations allocations{{"gone", {{"main", {.cpus = {1}}}}}, {"here", {{"main", {.cpus = {2}}}}}};
  CHECK(release_all_but(pods({pod("here"), pod("new")}), allocations));
  CHECK_FALSE(release_all_but(pods({pod("here"), pod("new")}), allocations));
  CHECK(allocations == Allocations{{"here", {{"main", {.cpus = {2}}}}}});
  CHECK_FALSE(some.allocate(asking, allocations).has_value());
  CHECK(release_all_but({}, allocations));
  CHECK(some.allocate(asking, allocations).has_value());
}

TEST_CASE("what allocations rest upon names policies, CPUs and memory") {
  CHECK(allocator(all_static("restricted")).basis() ==
        ResourceAllocator::Basis{{"cpuManagerPolicy", "static"},
                                 {"memoryManagerPolicy", "Static"},
                                 {"onlineCpus", "0-15"},
                                 {"reservedCpus", "0,8"},
                                 {"numaNode0.memory", "10737418240 bytes, 1073741824 of them reserved"},
                                 {"numaNode1.memory", "10737418240 bytes, 1073741824 of them reserved"}});
}

}  // namespace evictd::admission::resource_allocator_test
