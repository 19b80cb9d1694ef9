#include "agent/pod_ranking.hpp"

#include <doctest/doctest.h>

#include "fixture/pods.hpp"

namespace evictd::agent::pod_ranking_test {
namespace {

using enum core::Signal;
using fixture::container;
using fixture::pod;
using fixture::with_priority;
using fixture::operator""_GiB;
using fixture::operator""_MiB;

std::string why(core::Signal signal, core::Pod pod, std::optional<std::int64_t> usage, std::int64_t request = 0) {
  core::PlacedPod placed;
  placed.ranked = {.pod = std::make_shared<const core::Pod>(std::move(pod)),
                   .usage = usage.value_or(0),
                   .request = request,
                   .has_stats = usage.has_value()};
  return agent::why(signal, placed);
}

core::Pod asking() { return pod("a", {container("main", {{"memory", "1Gi"}})}); }

}  // namespace

TEST_CASE("memory and disk are told against the request") {
  CHECK(why(MemoryAvailable, asking(), 1_GiB + 312_MiB, 1_GiB) == "uses 312Mi more than it asked for");
  CHECK(why(MemoryAvailable, asking(), 2_GiB + 512_MiB, 1_GiB) == "uses 1.5Gi more than it asked for");
  CHECK(why(MemoryAvailable, asking(), 1_GiB, 1_GiB) == "within its request");
  CHECK(why(MemoryAvailable, pod("a"), 80_MiB) == "best effort, uses 80Mi");
  CHECK(why(NodefsAvailable, pod("a"), 80_MiB) == "asked for none, uses 80Mi");
  CHECK(why(MemoryAvailable, pod("a", {container("main", {{"cpu", "1"}})}), 80_MiB) == "asked for none, uses 80Mi");
  CHECK(why(MemoryAvailable, pod("a"), 0) == "uses nothing");
  CHECK(why(MemoryAvailable, pod("a"), {}) == "was not measured: goes before others");
}

TEST_CASE("inodes and processes are counted") {
  CHECK(why(NodefsInodesFree, asking(), 5000, 1_GiB) == "uses 5000 inodes");
  CHECK(why(PidAvailable, asking(), 1) == "runs 1 process");
  CHECK(why(PidAvailable, asking(), 42) == "runs 42 processes");
}

TEST_CASE("what puts a pod out of its numbers' place is said instead of them") {
  CHECK(why(MemoryAvailable, with_priority(pod("a"), core::system_critical_priority), 1_GiB) ==
        "critical: never evicted");
  core::PlacedPod placed;
  placed.ranked = {.pod = std::make_shared<const core::Pod>(pod("a")), .usage = 1_GiB};
  placed.backing_off = true;
  CHECK(agent::why(MemoryAvailable, placed) == "best effort, uses 1Gi; came straight back: goes behind its equals");
  placed.stuck = true;
  CHECK(agent::why(MemoryAvailable, placed) == "an eviction did not end it: goes last");
  placed.ranked.nothing_to_gain = true;
  CHECK(agent::why(MemoryAvailable, placed) == "nothing of it runs: not evicted");
}

TEST_CASE("a bound is told as one") {
  core::PlacedPod placed;
  placed.ranked = {.pod = std::make_shared<const core::Pod>(pod("a")), .usage = 80_MiB, .at_most = true};
  CHECK(agent::why(MemoryAvailable, placed) == "best effort, uses at most 80Mi");
  placed.ranked.request = 40_MiB;
  CHECK(agent::why(MemoryAvailable, placed) == "uses at most 40Mi more than it asked for");
}

}  // namespace evictd::agent::pod_ranking_test
