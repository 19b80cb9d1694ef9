#include "admission/resize_handler.hpp"

#include <doctest/doctest.h>

#include "fixture/machines.hpp"

namespace evictd::admission::resize_handler_test {
namespace {

using namespace fixture;

/// A node of two CPUs and 4 GiB.
Verdict resize(const core::Pod& desired, const core::Pod* allocated, const AllocationSettings& settings = {}) {
  const NodeSnapshot node{
      .node = core::Node{.name = "n1", .allocatable = amounts({{"cpu", "2"}, {"memory", "4Gi"}, {"pods", "10"}})}};
  return ResizeHandler{settings}.admit(
      {.pod = desired, .other_pods = {}, .node = node, .operation = Operation::Resize, .allocated = allocated});
}

core::Pod asking(Amounts requests) { return pod("a", {container("main", requests)}); }

Verdict infeasible(std::string message) { return Verdict::reject("Infeasible", std::move(message)); }

}  // namespace

TEST_CASE("it has a say in resizes alone") {
  const ResizeHandler handler{AllocationSettings{}};
  CHECK(handler.name() == "resize");
  CHECK(handler.is_asked(Operation::Resize));
  CHECK_FALSE(handler.is_asked(Operation::Add));
}

TEST_CASE("what the node could never give is infeasible, and memory is told of first") {
  const auto small = asking({{"cpu", "1"}});
  CHECK(resize(asking({{"cpu", "2"}, {"memory", "4Gi"}}), &small) == Verdict::admit());
  CHECK(resize(asking({{"cpu", "2001m"}}), &small) ==
        infeasible("Node didn't have enough capacity: cpu, requested: 2001, capacity: 2000"));
  CHECK(resize(asking({{"cpu", "3"}, {"memory", "5Gi"}}), &small) ==
        infeasible("Node didn't have enough capacity: memory, requested: 5368709120, capacity: 4294967296"));
  auto with_overhead = asking({{"cpu", "2"}});
  with_overhead.overhead = amounts({{"cpu", "1m"}});
  CHECK(resize(with_overhead, &small).reason == "Infeasible");
  auto as_a_whole = asking({{"cpu", "1"}});
  as_a_whole.resources = core::ResourceRequirements{.requests = amounts({{"cpu", "3"}}), .limits = {}};
  CHECK(resize(as_a_whole, &small).reason == "Infeasible");
}

TEST_CASE("a static pod is never resized, whichever side says that it is one") {
  const auto small = asking({{"cpu", "1"}});
  const auto large = asking({{"cpu", "2"}});
  const auto from_file = [](core::Pod pod) { return with_annotation(pod, "kubernetes.io/config.source", "file"); };
  const auto no = infeasible("In-place resize of static-pods is not supported");
  CHECK(resize(from_file(large), &small) == no);
  const auto listed = from_file(small);
  CHECK(resize(large, &listed) == no);
  const auto of_the_cluster = with_annotation(large, "kubernetes.io/config.source", "api");
  CHECK(resize(of_the_cluster, &small) == Verdict::admit());
}

TEST_CASE("a Guaranteed pod beside a static policy keeps the CPUs and the memory that it has") {
  const AllocationSettings cpus{.cpu_policy = "static"};
  const AllocationSettings memory{.memory_policy = "Static"};
  const auto before = pod("a", {guaranteed("main", "1", "1Gi")});
  const auto more_cpu = pod("a", {guaranteed("main", "2", "1Gi")});
  const auto less_cpu = pod("a", {guaranteed("main", "500m", "1Gi")});
  const auto more_memory = pod("a", {guaranteed("main", "1", "2Gi")});
  const auto no_cpu = infeasible("Resize is infeasible for Guaranteed Pods alongside CPU Manager policy \"static\"");
  const auto no_memory =
      infeasible("Resize is infeasible for Guaranteed Pods alongside Memory Manager policy \"Static\"");
  CHECK(resize(more_cpu, &before, cpus) == no_cpu);
  CHECK(resize(less_cpu, &before, cpus) == no_cpu);
  CHECK(resize(more_memory, &before, cpus) == Verdict::admit());
  CHECK(resize(more_memory, &before, memory) == no_memory);
  CHECK(resize(more_cpu, &before, memory) == Verdict::admit());
  CHECK(resize(before, &before, cpus) == Verdict::admit());
  CHECK(resize(before, nullptr, cpus) == no_cpu);  // nothing was allocated to it
  CHECK(resize(more_cpu, &before) == Verdict::admit());
  const auto burstable = asking({{"cpu", "2"}});
  CHECK(resize(burstable, &before, cpus) == Verdict::admit());
}

TEST_CASE("sidecars are resized like containers; other init containers have ended") {
  const AllocationSettings cpus{.cpu_policy = "static"};
  auto before = pod("a", {guaranteed("main", "1", "1Gi")});
  before.init_containers = {as_sidecar(guaranteed("side", "250m", "1Gi")), guaranteed("init", "500m", "1Gi")};
  auto other_init = before;
  other_init.init_containers[1] = guaranteed("init", "1", "1Gi");
  CHECK(resize(other_init, &before, cpus) == Verdict::admit());
  auto other_sidecar = before;
  other_sidecar.init_containers[0] = as_sidecar(guaranteed("side", "500m", "1Gi"));
  CHECK(resize(other_sidecar, &before, cpus).reason == "Infeasible");
}

TEST_CASE("of a node that is not known it says nothing") {
  const auto large = asking({{"cpu", "2000"}});
  const NodeSnapshot unknown;
  CHECK(ResizeHandler{AllocationSettings{}}.admit(
            {.pod = large, .other_pods = {}, .node = unknown, .operation = Operation::Resize}) == Verdict::admit());
}

}  // namespace evictd::admission::resize_handler_test
