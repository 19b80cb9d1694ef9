#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <variant>

#include "core/synchronizer.hpp"
#include "fixture/guard.hpp"

// A pod that no list names yet may prove to be critical.

namespace evictd::core::synchronizer_unlisted_test {
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

/// A node that is short of 1 GiB, and who goes when these pods are on it; "new" is unlisted.
struct Node {
  PodList on_it;
  Guard::Usages usage{};
  Guard guard{policy({threshold(MemoryAvailable, "2Gi"), threshold(NodefsAvailable, "10Gi")}), {}};

  Lines evicts(const Observations& observations = observed({{MemoryAvailable, 1_GiB, 8_GiB}})) {
    (void)guard.tell(PodsChanged{std::make_shared<const PodList>(on_it), {"new"}});
    (void)guard.pass(0s, observations);
    return guard.measured(usage);
  }
};

Lines evicts(const std::string& name) { return {"evict default/" + name + " (memory.available, grace 0s)"}; }

Pod asking(const char* name, const char* memory) { return pod(name, {container("main", {{"memory", memory}})}); }

}  // namespace

TEST_CASE("a listed pod that suffices goes before an unlisted one that is larger") {
  Node node{.on_it = pods({pod("new"), pod("listed")}),
            .usage = {{"new", memory_usage(2_GiB)}, {"listed", memory_usage(1_GiB)}}};
  CHECK(node.evicts() == evicts("listed"));
  const auto& evict = std::get<Eviction>(node.guard.actions().front());
  CHECK(evict.ranking.front().pod->name == "listed");
  CHECK(evict.ranking.size() == 2);
  CHECK(node.guard.reading().eligibilities == std::vector{Eligibility::unlisted, Eligibility::candidate});
}

TEST_CASE("a pod that could not go for a disk while it was unlisted is looked at once it is listed") {
  const auto short_of_disk = observed({{NodefsAvailable, 1_GiB, 100_GiB}});
  const Lines no_victim{"no victim for nodefs.available<10Gi"};
  Node node{.on_it = pods({pod("new")})};
  auto& guard = node.guard;
  const auto has_asked_to_wake = [&] {
    return std::ranges::any_of(guard.actions(), [](const Action& a) { return std::holds_alternative<WakeAt>(a); });
  };
  (void)guard.tell(PodsChanged{std::make_shared<const PodList>(node.on_it), {"new"}});
  (void)guard.pass(0s, short_of_disk);
  (void)guard.reclaimed(short_of_disk);
  SUBCASE("after the pass") {
    CHECK(guard.measured({}) == no_victim);
    CHECK_FALSE(has_asked_to_wake());
    guard.set_pods(node.on_it);
  }
  SUBCASE("another, that came while this one was measured") {
    (void)guard.tell(PodsChanged{std::make_shared<const PodList>(pods({pod("new"), pod("other")})), {"new"}});
    CHECK_FALSE(has_asked_to_wake());
    CHECK(guard.measured({}) == no_victim);
  }
  CHECK(has_asked_to_wake());
  guard.set_pods(node.on_it);
  CHECK_FALSE(has_asked_to_wake());  // once

  (void)guard.pass(1s, short_of_disk);
  (void)guard.reclaimed(short_of_disk);
  CHECK(guard.measured({{"new", fixture::disk_usage(5_GiB)}}) ==
        Lines{"evict default/new (nodefs.available, grace 0s)"});
}

TEST_CASE("the unlisted pod goes where no listed one would do") {
  SUBCASE("since none ends the shortage") {
    Node node{.on_it = pods({pod("new"), pod("listed")}),
              .usage = {{"new", memory_usage(2_GiB)}, {"listed", memory_usage(1000_MiB)}}};
    CHECK(node.evicts() == evicts("new"));
  }
  SUBCASE("since it is within its request") {
    Node node{.on_it = pods({pod("new"), asking("listed", "2Gi")}),
              .usage = {{"new", memory_usage(2_GiB)}, {"listed", memory_usage(2_GiB)}}};
    CHECK(node.evicts() == evicts("new"));
  }
  SUBCASE("since it is small beside the unlisted one") {
    Node node{.on_it = pods({pod("new"), pod("listed")}),
              .usage = {{"new", memory_usage(4_GiB)}, {"listed", memory_usage(1_GiB)}}};
    CHECK(node.evicts() == evicts("new"));
  }
  SUBCASE("since its usage is but a bound, or unknown") {
    Node node{.on_it = pods({pod("new"), pod("listed")}),
              .usage = {{"new", memory_usage(2_GiB)}, {"listed", {.working_set = 1_GiB, .at_most = true}}}};
    CHECK(node.evicts() == evicts("new"));
  }
  SUBCASE("since it is critical") {
    Node node{.on_it = pods({pod("new"), fixture::with_priority(pod("listed"), system_critical_priority)}),
              .usage = {{"new", memory_usage(2_GiB)}, {"listed", memory_usage(2_GiB)}}};
    CHECK(node.evicts() == evicts("new"));
  }
}

TEST_CASE("of an unlisted pod's files nothing is known: it does not go for a disk") {
  Node node{.on_it = pods({pod("new"), pod("listed")}), .usage = {{"listed", fixture::disk_usage(1_GiB)}}};
  const auto low = observed({{NodefsAvailable, 1_GiB, 100_GiB}});
  (void)node.guard.tell(PodsChanged{std::make_shared<const PodList>(node.on_it), {"new"}});
  (void)node.guard.pass(0s, low);
  (void)node.guard.reclaimed(low);
  CHECK(node.guard.measured(node.usage) == Lines{"evict default/listed (nodefs.available, grace 0s)"});
  CHECK(std::get<Eviction>(node.guard.actions().front()).ranking.size() == 1);
}

}  // namespace evictd::core::synchronizer_unlisted_test
