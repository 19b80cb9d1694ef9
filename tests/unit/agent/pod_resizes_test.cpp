#include "agent/pod_resizes.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "agent/fakes.hpp"
#include "fixture/pods.hpp"

namespace evictd::agent::pod_resizes_test {
namespace {

using fixture::pod;

core::Pod with_memory(core::Pod pod, const char* request) {
  pod.containers = {fixture::container("main", {{"memory", request}})};
  return pod;
}

core::PodPtr told(core::Pod pod) { return std::make_shared<const core::Pod>(std::move(pod)); }

std::int64_t memory(const core::Pod& pod) { return pod.containers.front().resources.requests.at("memory").value(); }

/// As the pods count with the resizes.
core::PodList applied(const PodResizes& resizes, core::PodList pods) {
  resizes.apply(pods);
  return pods;
}

bool nobody_comes(const std::string&) { return false; }

}  // namespace

TEST_CASE("a pod counts as it was resized last, and others as they are told of") {
  PodResizes resizes;
  CHECK(resizes.empty());
  const auto now = fixture::pods({with_memory(pod("a"), "1Gi"), with_memory(pod("b"), "1Gi")});
  resizes.add(now[0], with_memory(pod("a"), "2Gi"));
  resizes.add(now[0], with_memory(pod("a"), "3Gi"));
  CHECK(resizes.contains("a"));
  CHECK_FALSE(resizes.contains("b"));
  const auto counted = applied(resizes, now);
  CHECK(memory(*counted[0]) == std::int64_t{3} << 30);
  CHECK(counted[1] == now[1]);
}

TEST_CASE("what the runtime has not carried out does not count, unless the pod was resized again since") {
  PodResizes resizes;
  const auto now = fixture::pods({with_memory(pod("a"), "1Gi"), with_memory(pod("b"), "1Gi")});
  const api::ContainerUpdate larger{.container_id = "c-a", .resources = {.cpu_shares = 2}};
  const api::ContainerUpdate largest{.container_id = "c-a", .resources = {.cpu_shares = 3}};
  resizes.add(now[0], with_memory(pod("a"), "2Gi"), larger);
  resizes.add(now[1], with_memory(pod("b"), "2Gi"));
  resizes.add(now[0], with_memory(pod("a"), "3Gi"), largest);
  resizes.refused(larger);
  CHECK(memory(*applied(resizes, now)[0]) == std::int64_t{3} << 30);
  resizes.refused(largest);
  CHECK(memory(*applied(resizes, now)[0]) == std::int64_t{2} << 30);
  resizes.refused(largest);
  CHECK(memory(*applied(resizes, now)[0]) == std::int64_t{2} << 30);
  resizes.add(now[1], with_memory(pod("b"), "3Gi"));
  resizes.refused(largest);
  CHECK(memory(*applied(resizes, now)[1]) == std::int64_t{3} << 30);
}

TEST_CASE("a resize holds for as long as what is told of the pod stays the same") {
  PodResizes resizes;
  const auto before = fixture::pods({with_memory(pod("a"), "1Gi")});
  resizes.add(before[0], with_memory(pod("a"), "2Gi"));
  resizes.pods_changed(before, nobody_comes);
  REQUIRE(resizes.contains("a"));
  // A second one is measured by what was told when the first came.
  resizes.add(told(with_memory(pod("a"), "2Gi")), with_memory(pod("a"), "3Gi"));
  resizes.pods_changed(before, nobody_comes);
  REQUIRE(resizes.contains("a"));
  resizes.pods_changed(fixture::pods({with_memory(pod("a"), "3Gi")}), nobody_comes);
  CHECK(resizes.empty());
}

TEST_CASE("the resize of a pod that nobody tells of goes with it, unless the pod has yet to come") {
  PodResizes resizes;
  resizes.add(told(with_memory(pod("a"), "1Gi")), with_memory(pod("a"), "2Gi"));
  resizes.add(told(with_memory(pod("b"), "1Gi")), with_memory(pod("b"), "2Gi"));
  resizes.pods_changed({}, [](const std::string& uid) { return uid == "b"; });
  CHECK_FALSE(resizes.contains("a"));
  CHECK(resizes.contains("b"));
}

TEST_CASE(
    "a resize that is taken back leaves the one before it, and no other that has come since is taken back with it") {
  PodResizes resizes;
  const auto before = fixture::pods({with_memory(pod("a"), "1Gi")});
  const auto first = resizes.add(before[0], with_memory(pod("a"), "2Gi"));
  const auto second = resizes.add(before[0], with_memory(pod("a"), "3Gi"));
  resizes.take_back(first);
  CHECK(memory(*applied(resizes, before)[0]) == std::int64_t{3} << 30);
  resizes.take_back(second);
  CHECK(memory(*applied(resizes, before)[0]) == std::int64_t{2} << 30);
  resizes.take_back(first);
  CHECK(resizes.empty());
  resizes.take_back(second);
  CHECK(resizes.empty());
}

TEST_CASE("an update is of the pod that has the container, whose id may be cut short") {
  struct Node final : RunningPods {
    [[nodiscard]] pods::RuntimePodPtr find(std::string_view uid) const override {
      return uid == "gone" ? nullptr : runtime_pod(pod(std::string(uid)));
    }
    void changed() override {}
  };
  const auto pods = fixture::pods({pod("gone"), pod("a"), with_memory(pod("bb"), "1Gi")});
  const auto updated = updated_pod({.container_id = "c-b", .resources = {.cpu_shares = 512}}, pods, Node{});
  REQUIRE(updated);
  CHECK(updated->uid == "bb");
  CHECK(updated->containers.front().resources.requests == fixture::amounts({{"memory", "1Gi"}, {"cpu", "500m"}}));
  CHECK(requests_more(*pods[2], *updated));
  CHECK_FALSE(requests_more(*updated, *updated));
  CHECK_FALSE(updated_pod({.container_id = "c-gone", .resources = {.cpu_shares = 512}}, pods, Node{}));
}

}  // namespace evictd::agent::pod_resizes_test
