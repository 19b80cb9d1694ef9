#include "admission/resource_fit.hpp"

#include <doctest/doctest.h>

#include <limits>

#include "core/resize.hpp"
#include "fixture/pods.hpp"

namespace evictd::admission::resource_fit_test {
namespace {

using fixture::amounts;
using fixture::container;
using fixture::pod;
using fixture::pods;
using fixture::sidecar;
using fixture::operator""_MiB;
using fixture::operator""_GiB;
using Lacks = std::vector<InsufficientResource>;

const auto allocatable = amounts({{"cpu", "2"}, {"memory", "4Gi"}, {"ephemeral-storage", "10Gi"}, {"pods", "3"}});

core::Pod asking(const char* resource, const char* amount) {
  return pod("a", {container("main", {{resource, amount}})});
}

}  // namespace

TEST_CASE("resources are told apart by their names") {
  for (const auto* name : {"example.com/gpu", "a/b"}) {
    CHECK(is_extended_resource(name));
    CHECK(is_scalar_resource(name));
  }
  for (const auto* name : {"hugepages-2Mi", "kubernetes.io/batch", "attachable-volumes-x", "x.kubernetes.io/y"}) {
    CHECK_FALSE(is_extended_resource(name));
    CHECK(is_scalar_resource(name));
  }
  for (const auto* name : {"cpu", "memory", "storage", "pods", "requests.example.com/gpu"}) {
    CHECK_FALSE(is_extended_resource(name));
    CHECK_FALSE(is_scalar_resource(name));
  }
}

TEST_CASE("what a pod takes: containers together with sidecars, or the largest init container, and the overhead") {
  auto subject = pod("a", {container("x", {{"memory", "1Gi"}, {"cpu", "100m"}}), container("y", {{"memory", "1Gi"}})});
  CHECK(scheduled_request(subject, "memory") == 2_GiB);
  CHECK(scheduled_request(subject, "cpu") == 100);
  subject.init_containers = {sidecar("s", {{"memory", "512Mi"}}), container("i", {{"memory", "3Gi"}})};
  CHECK(scheduled_request(subject, "memory") == 3_GiB + 512_MiB);
  subject.overhead = amounts({{"memory", "64Mi"}, {"ephemeral-storage", "1Mi"}});
  CHECK(scheduled_request(subject, "memory") == 3_GiB + 576_MiB);
  CHECK(scheduled_request(subject, "ephemeral-storage") == 1_MiB);  // although no container asks for it
  CHECK(scheduled_request(subject, "example.com/gpu") == 0);
}

TEST_CASE("pod-level requests replace those of containers, for the resources that have them") {
  auto subject = pod("a", {container("x", {{"memory", "1Gi"}, {"example.com/gpu", "1"}})});
  subject.resources = core::ResourceRequirements{
      .requests = amounts({{"memory", "3Gi"}, {"hugepages-2Mi", "4Mi"}, {"example.com/gpu", "7"}}), .limits = {}};
  CHECK(scheduled_request(subject, "memory") == 3_GiB);
  CHECK(scheduled_request(subject, "hugepages-2Mi") == 4_MiB);
  CHECK(scheduled_request(subject, "example.com/gpu") == 1);
}

TEST_CASE("a pod that fits lacks nothing, to the last byte") {
  CHECK(insufficient_resources(asking("memory", "4Gi"), {}, allocatable).empty());
  CHECK(insufficient_resources(asking("memory", "3Gi"), pods({asking("memory", "1Gi")}), allocatable).empty());
  CHECK(insufficient_resources(asking("cpu", "2"), {}, allocatable).empty());
}

TEST_CASE("a lack is told in thousandths of CPU and whole units of all else") {
  CHECK(insufficient_resources(asking("cpu", "1500m"), pods({asking("cpu", "600m")}), allocatable) ==
        Lacks{{.resource = "cpu", .requested = 1500, .used = 600, .capacity = 2000}});
  const auto lacks = insufficient_resources(asking("memory", "3Gi"), pods({asking("memory", "2Gi")}), allocatable);
  CHECK(lacks == Lacks{{.resource = "memory", .requested = 3_GiB, .used = 2_GiB, .capacity = 4_GiB}});
  CHECK(lacks.at(0).missing() == 1_GiB);
}

TEST_CASE("a pod that is there takes the largest of what a resize concerns, and its overhead beside it") {
  auto there = asking("memory", "1Gi");
  there.overhead = amounts({{"memory", "64Mi"}, {"cpu", "1m"}});
  CHECK(taken_request(there, "memory") == 1_GiB + 64_MiB);
  core::apply_resize(
      there, {.containers = {
                  {"main", {.allocated = amounts({{"memory", "2Gi"}}), .actuated = amounts({{"memory", "3Gi"}})}}}});
  CHECK(taken_request(there, "memory") == 3_GiB + 64_MiB);
  CHECK(taken_request(there, "cpu") == 1);
  CHECK(scheduled_request(there, "memory") == 2_GiB + 64_MiB);
  CHECK(insufficient_resources(asking("memory", "960Mi"), pods({there}), allocatable).empty());
  CHECK(insufficient_resources(asking("memory", "1Gi"), pods({there}), allocatable) ==
        Lacks{{.resource = "memory", .requested = 1_GiB, .used = 3_GiB + 64_MiB, .capacity = 4_GiB}});
}

TEST_CASE("a pod that asks for nothing needs room for one more pod only") {
  const auto two = pods({asking("memory", "4Gi"), asking("memory", "4Gi")});
  CHECK(insufficient_resources(pod("a"), two, allocatable).empty());
  auto three = two;
  three.push_back(two[0]);
  CHECK(insufficient_resources(pod("a"), three, allocatable) ==
        Lacks{{.resource = "pods", .requested = 1, .used = 3, .capacity = 3}});
}

TEST_CASE("only what the pod itself asks for can be lacking") {
  const auto overcommitted = pods({asking("memory", "8Gi")});
  CHECK(insufficient_resources(asking("cpu", "1"), overcommitted, allocatable).empty());
  CHECK(insufficient_resources(asking("memory", "0"), overcommitted, allocatable).empty());
}

TEST_CASE("lacks come in the kubelet's order") {
  const auto greedy = pod("a", {container("main", {{"cpu", "3"},
                                                   {"memory", "5Gi"},
                                                   {"ephemeral-storage", "11Gi"},
                                                   {"hugepages-2Mi", "2Mi"},
                                                   {"a.example/x", "1"},
                                                   {"storage", "5Gi"}})});
  std::vector<std::string> names;
  for (const auto& lack : insufficient_resources(greedy, pods({pod("b"), pod("c"), pod("d")}), allocatable))
    names.push_back(lack.resource);
  CHECK(names ==
        std::vector<std::string>{"pods", "cpu", "memory", "ephemeral-storage", "a.example/x", "hugepages-2Mi"});
}

TEST_CASE("what is not allocatable at all is not there") {
  CHECK(insufficient_resources(asking("memory", "1"), {}, amounts({{"pods", "1"}})) ==
        Lacks{{.resource = "memory", .requested = 1, .used = 0, .capacity = 0}});
  CHECK(insufficient_resources(pod("a"), {}, {}) ==
        Lacks{{.resource = "pods", .requested = 1, .used = 0, .capacity = 0}});
}

TEST_CASE("requests of any size do not overflow") {
  const auto huge = asking("memory", "9223372036854775807");
  CHECK(insufficient_resources(huge, pods({huge, huge}), allocatable) ==
        Lacks{{.resource = "memory",
               .requested = std::numeric_limits<std::int64_t>::max(),
               .used = std::numeric_limits<std::int64_t>::max(),
               .capacity = 4_GiB}});
}

TEST_CASE("requests for extended resources that the node has not are dropped, also from init containers") {
  auto subject = pod("a", {container("main", {{"example.com/gpu", "1"}, {"example.com/nic", "1"}, {"memory", "1Gi"}})});
  subject.init_containers = {container("i", {{"example.com/gpu", "2"}, {"hugepages-2Mi", "2Mi"}})};
  const auto rest = without_missing_extended_resources(subject, amounts({{"example.com/nic", "0"}}));
  CHECK(rest.containers[0].resources.requests == amounts({{"example.com/nic", "1"}, {"memory", "1Gi"}}));
  CHECK(rest.init_containers[0].resources.requests == amounts({{"hugepages-2Mi", "2Mi"}}));
}

}  // namespace evictd::admission::resource_fit_test
