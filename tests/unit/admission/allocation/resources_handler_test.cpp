#include "admission/allocation/resources_handler.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "admission/chain.hpp"
#include "fixture/machines.hpp"

namespace evictd::admission::resources_handler_test {

using namespace fixture;

TEST_CASE("the handler's verdict carries what the containers are given") {
  ResourcesHandler handler{value_of(ResourceAllocator::make(all_static("restricted")))};
  CHECK(handler.name() == "resources");
  NodeSnapshot node;
  const core::PodList nobody;
  const auto asking = pod("a", {guaranteed("main", "6", "1Gi")});
  const auto verdict = handler.admit({.pod = asking, .other_pods = nobody, .node = node});
  CHECK(verdict.admitted);
  CHECK(verdict.allocation.at("main").cpus == CpuSet{1, 2, 3, 9, 10, 11});

  // Both nodes have some CPUs left, neither six.
  node.allocations["other"]["main"].cpus = {1, 4, 5, 6};
  CHECK(handler.admit({.pod = asking, .other_pods = nobody, .node = node}) ==
        Verdict::reject("TopologyAffinityError", "Resources cannot be allocated with Topology locality"));
}

TEST_CASE("a pod that is resized keeps what it has, and is given nothing more") {
  ResourcesHandler handler{value_of(ResourceAllocator::make(all_static("restricted")))};
  NodeSnapshot node;
  const core::PodList nobody;
  const auto asking = pod("a", {guaranteed("main", "2", "1Gi")});
  const Attributes resize{.pod = asking, .other_pods = nobody, .node = node, .operation = Operation::Resize};
  CHECK(handler.admit(resize) == Verdict::admit());
  node.allocations["a"]["main"].cpus = {1, 9};
  const auto verdict = handler.admit(resize);
  CHECK(verdict.admitted);
  CHECK(verdict.allocation == node.allocations["a"]);
}

TEST_CASE("the chain gives resources after the node's conditions were looked at, and tells wrong settings") {
  const auto chain = value_of(kubelet_chain({.allocation = all_static("restricted")}));
  const auto names = chain.names();
  CHECK(std::ranges::find(names, "eviction") < std::ranges::find(names, "resources"));
  const auto asking = pod("a", {guaranteed("main", "2", "1Gi")});
  const core::PodList nobody;
  const NodeSnapshot node{
      .node = core::Node{.name = "n", .allocatable = amounts({{"cpu", "16"}, {"memory", "64Gi"}, {"pods", "10"}})}};
  const auto verdict = chain.admit({.pod = asking, .other_pods = nobody, .node = node}).verdict;
  CHECK(verdict.allocation.at("main").cpus == CpuSet{1, 9});
  CHECK(error_of(kubelet_chain({.allocation = {.cpu_policy = "x"}})) == "cpuManagerPolicy: unknown policy: \"x\"");
}

}  // namespace evictd::admission::resources_handler_test
