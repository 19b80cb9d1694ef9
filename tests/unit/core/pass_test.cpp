#include "core/pass.hpp"

#include <doctest/doctest.h>

#include "core/synchronizer.hpp"
#include "fixture/guard.hpp"

// What a pass promises to whoever drives it. What it decides is in synchronizer_*_test.cpp.

namespace evictd::core::pass_test {
namespace {

using namespace std::chrono_literals;
using enum Signal;
using fixture::container;
using fixture::Guard;
using fixture::Lines;
using fixture::memory_usage;
using fixture::observed;
using fixture::pod;
using fixture::pods;
using fixture::policy;
using fixture::threshold;
using fixture::operator""_GiB;
using fixture::operator""_MiB;

Observations memory(std::int64_t available) { return observed({{MemoryAvailable, available, 4_GiB}}); }
Observations nodefs(std::int64_t available) { return observed({{NodefsAvailable, available, 100_GiB}}); }

Pod with_limit(std::string name, const char* limit) {
  return pod(std::move(name), {container("main", {}, {{"ephemeral-storage", limit}})});
}

}  // namespace

TEST_CASE("a pass goes through the rules in the kubelet's order") {
  Guard guard{policy({threshold(NodefsAvailable, "10Gi")}), pods({with_limit("a", "1Gi")})};
  CHECK(guard.pass(0s, nodefs(1_GiB)) ==
        Lines{"crossed nodefs.available<10Gi", "conditions [DiskPressure]", "read pod usage: local storage limits"});
  CHECK(guard.measured({{"a", fixture::disk_usage(1_MiB)}}) == Lines{"reclaim node: containers images"});
  CHECK(guard.reclaimed(nodefs(1_GiB)) == Lines{"read pod usage: disk"});
  CHECK(guard.measured({{"a", fixture::disk_usage(1_MiB)}}) == Lines{"evict default/a (nodefs.available, grace 0s)"});
  CHECK(guard.measured({}) == Lines{});  // it is over
}

TEST_CASE("a question without an answer, or with one of another kind, ends the pass") {
  for (const Answer& answer : {Answer{}, Answer{NodeReclaimed{memory(0)}}}) {
    Guard guard{policy({threshold(MemoryAvailable, "1Gi")}), pods({pod("a")})};
    (void)guard.pass(0s, memory(0));
    CHECK(guard.answer(guard.waiting(), answer) == Lines{});
    CHECK(guard.measured({{"a", memory_usage(1_MiB)}}) == Lines{});
    CHECK(guard.pass(1s, memory(0)) == Lines{"read pod usage: memory"});  // the next one asks anew
  }
}

TEST_CASE("a pass for a disk that ended without an answer keeps no other from being begun") {
  Guard guard{policy({threshold(NodefsAvailable, "10Gi")}), pods({pod("a")})};
  (void)guard.pass(0s, nodefs(1_GiB));
  CHECK(guard.pass(1s, nodefs(1_GiB)) == Lines{});
  (void)guard.answer(guard.waiting(), {});
  CHECK(guard.pass(2s, nodefs(1_GiB)) == Lines{"reclaim node: containers images"});
}

TEST_CASE("a pass that a newer one made pointless ends at once, a disk's goes on") {
  Guard guard{policy({threshold(NodefsAvailable, "10Gi")}), pods({with_limit("a", "1Gi")})};
  (void)guard.pass(0s, nodefs(1_GiB));
  const auto limits = guard.waiting();
  (void)guard.pass(1s, nodefs(1_GiB));
  CHECK(guard.answer(limits, PodsMeasured{.usage = {std::nullopt}}) == Lines{});
  (void)guard.measured({});
  const auto disk = guard.waiting();
  (void)guard.pass(2s, nodefs(1_GiB));
  CHECK(guard.answer(disk, NodeReclaimed{nodefs(1_GiB)}) == Lines{"read pod usage: disk"});
}

TEST_CASE("a pass for a disk that other thresholds made pointless ends at once, and not the one begun since") {
  const auto low = policy({threshold(NodefsAvailable, "10Gi")});
  Guard guard{low, pods({pod("a")})};
  (void)guard.pass(0s, nodefs(1_GiB));
  const auto dropped = guard.waiting();
  (void)guard.tell(PolicyChanged{low});
  CHECK(guard.pass(1s, nodefs(1_GiB)) == Lines{"reclaim node: containers images"});
  const auto begun_since = guard.waiting();
  CHECK(guard.answer(dropped, NodeReclaimed{nodefs(1_GiB)}) == Lines{});
  CHECK(guard.pass(2s, nodefs(1_GiB)) == Lines{});  // a disk is waited for
  CHECK(guard.answer(begun_since, NodeReclaimed{nodefs(1_GiB)}) == Lines{"read pod usage: disk"});
}

}  // namespace evictd::core::pass_test
