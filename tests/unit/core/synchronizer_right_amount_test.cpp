#include <doctest/doctest.h>

#include <algorithm>
#include <memory>

#include "core/synchronizer.hpp"
#include "fixture/guard.hpp"

// Neither the wrong pod again and again, nor too many at once.

namespace evictd::core::synchronizer_right_amount_test {
namespace {

using namespace std::chrono_literals;
using enum Signal;
using fixture::Guard;
using fixture::Lines;
using fixture::memory_usage;
using fixture::observed;
using fixture::pod;
using fixture::pods;
using fixture::policy;
using fixture::threshold;
using fixture::operator""_GiB;

Observations memory(std::int64_t available) { return observed({{MemoryAvailable, available, 8_GiB}}); }

const Lines reads_memory{"read pod usage: memory"};
Lines evicts(const std::string& name) { return {"evict default/" + name + " (memory.available, grace 0s)"}; }

Pod again(std::string name, std::string uid) {
  auto result = pod(std::move(name));
  result.uid = std::move(uid);
  return result;
}

}  // namespace

TEST_CASE("a leaking pod that comes straight back goes again, and no pod within its request goes for it") {
  const auto innocent = pod("calm", {fixture::container("main", {{"memory", "2Gi"}})});
  Guard guard{policy({threshold(MemoryAvailable, "2Gi")}), pods({pod("hog"), innocent}), {.back_off = 5min}};
  const Guard::Usages usage{{"hog", memory_usage(3_GiB)}, {"calm", memory_usage(1_GiB)}};
  for (const auto* uid : {"hog", "2", "3"}) {
    guard.set_pods(pods({again("hog", uid), innocent}));
    (void)guard.pass(uid == std::string_view{"hog"} ? 0s : 10s, memory(1_GiB));
    CHECK(guard.reading().eligibilities == std::vector{Eligibility::candidate, Eligibility::candidate});
    REQUIRE(guard.measured(usage) == evicts("hog"));
    (void)guard.tell(CleanupEnded{uid});
  }
}

TEST_CASE("a pod that comes straight back goes behind its equals, whether it was listed at once or not") {
  Guard guard{policy({threshold(MemoryAvailable, "2Gi")}), pods({pod("hog"), pod("calm")}), {.back_off = 5min}};
  const Guard::Usages usage{{"hog", memory_usage(1_GiB)}, {"calm", memory_usage(1_GiB)}};
  (void)guard.pass(0s, memory(1_GiB));
  REQUIRE(guard.measured(usage) == evicts("hog"));
  (void)guard.tell(CleanupEnded{"hog"});
  auto nameless = again("2", "2");
  nameless.name_space = "unlisted";
  (void)guard.tell(PodsChanged{std::make_shared<const PodList>(pods({nameless, pod("calm")})), {"2"}});
  guard.set_pods(pods({again("hog", "2"), pod("calm")}));
  (void)guard.pass(10s, memory(1_GiB));
  CHECK(guard.measured(usage) == evicts("calm"));
}

TEST_CASE("who asks for the ranking gets the order of evictions, and changes nothing") {
  auto critical = again("vital", "vital");
  critical.priority = system_critical_priority;
  Guard guard{policy({threshold(MemoryAvailable, "2Gi")}),
              pods({pod("hog"), pod("calm"), pod("small"), critical}),
              {.back_off = 5min}};
  const auto ranking = [&](const PodList& pods, std::vector<std::int64_t> bytes, Duration time) {
    std::vector<std::optional<PodUsage>> usage;
    for (const auto amount : bytes) usage.push_back(memory_usage(amount));
    std::vector<std::string> names;
    for (const auto& placed : guard.synchronizer().ranking(MemoryAvailable, pods, usage, Instant{time}))
      names.push_back(placed.ranked.pod->name + (placed.backing_off ? " (back)" : "") +
                      (placed.stuck ? " (stuck)" : ""));
    return names;
  };
  const auto first = pods({pod("hog"), pod("calm"), pod("small"), critical});
  CHECK(ranking(first, {4_GiB, 1_GiB, 1, 2_GiB}, 0s) == std::vector<std::string>{"hog", "calm", "small", "vital"});
  (void)guard.pass(0s, memory(1_GiB));
  const Guard::Usages usage{{"hog", memory_usage(4_GiB)},
                            {"calm", memory_usage(1_GiB)},
                            {"small", memory_usage(1)},
                            {"vital", memory_usage(2_GiB)}};
  REQUIRE(guard.measured(usage) == evicts("hog"));
  CHECK(ranking(first, {4_GiB, 1_GiB, 1, 2_GiB}, 1s) ==
        std::vector<std::string>{"calm", "small", "vital"});  // the hog is on its way
  (void)guard.tell(CleanupEnded{"hog", false});
  const auto later = pods({pod("hog"), again("hog-bcdfg", "2"), pod("calm"), pod("small"), critical});
  guard.set_pods(later);
  for (int i = 0; i < 2; ++i)
    CHECK(ranking(later, {4_GiB, 1_GiB, 1_GiB, 1, 2_GiB}, 2s) ==
          std::vector<std::string>{"calm", "hog-bcdfg (back)", "small", "vital", "hog (back) (stuck)"});
  CHECK(guard.synchronizer().eligibility(MemoryAvailable, *later[0]) == Eligibility::last);
  (void)guard.pass(3s, memory(1_GiB));
  CHECK(guard.measured({{"hog", memory_usage(4_GiB)},
                        {"hog-bcdfg", memory_usage(1_GiB)},
                        {"calm", memory_usage(1_GiB)},
                        {"small", memory_usage(1)},
                        {"vital", memory_usage(2_GiB)}}) == evicts("calm"));
}

TEST_CASE("a pod that runs again counts each time it goes") {
  Guard guard{policy({threshold(MemoryAvailable, "2Gi")}), pods({pod("a")}), {.max_evictions_per_minute = 2}};
  for (const auto at : {0s, 10s}) {
    (void)guard.pass(at, memory(1_GiB));
    CHECK(guard.measured({{"a", memory_usage(1_GiB)}}) == evicts("a"));
    (void)guard.tell(CleanupEnded{"a"});
    (void)guard.tell(PodReturned{"a"});
  }
  CHECK(guard.pass(20s, memory(1_GiB)) == Lines{"no more evictions until 1m0s"});
}

TEST_CASE("no more than so many pods go in a minute, and the next goes as soon as one may") {
  Guard guard{policy({threshold(MemoryAvailable, "2Gi")}),
              pods({pod("a"), pod("b"), pod("c")}),
              {.max_evictions_per_minute = 2}};
  const Guard::Usages usage{{"a", memory_usage(3)}, {"b", memory_usage(2)}, {"c", memory_usage(1)}};
  for (const auto* name : {"a", "b"}) {
    (void)guard.pass(name[0] == 'a' ? 0s : 20s, memory(1_GiB));
    REQUIRE(guard.measured(usage) == evicts(name));
    (void)guard.tell(CleanupEnded{name});
  }
  const auto limited = guard.pass(30s, memory(1_GiB));
  CHECK(limited == Lines{"no more evictions until 1m0s"});
  CHECK(guard.everything().back() == "wake at 1m0s");
  CHECK(guard.pass(1min, memory(1_GiB)) == reads_memory);
  CHECK(guard.measured(usage) == evicts("c"));
}

TEST_CASE("a pod that has time to stop counts when it is chosen, and neither waits for the limit nor counts to hurry") {
  auto configured = policy({threshold(MemoryAvailable, "2Gi"), threshold(MemoryAvailable, "4Gi", 1s)});
  configured.max_pod_grace_period = 30s;
  const auto after_a_soft_eviction = [&](std::size_t most) {
    auto guard = std::make_unique<Guard>(configured, pods({pod("a"), pod("b")}),
                                         SynchronizerOptions{.max_evictions_per_minute = most});
    (void)guard->pass(0s, memory(3_GiB));
    (void)guard->pass(1s, memory(3_GiB));
    REQUIRE(guard->measured({{"a", memory_usage(2)}, {"b", memory_usage(1)}}) ==
            Lines{"evict default/a (memory.available, grace 30s)"});
    REQUIRE(guard->pass(2s, memory(1_GiB), {{.uid = "a", .bytes = 2, .killed = false}}).back() == reads_memory.front());
    return guard;
  };
  SUBCASE("where no other may go, be it the first") {
    const auto guard = after_a_soft_eviction(1);
    CHECK(guard->measured({{"a", memory_usage(2)}, {"b", memory_usage(3)}}) == evicts("a"));
    CHECK(guard->pass(3s, memory(1_GiB), {{"a", 2}}) == Lines{"no more evictions until 1m1s"});
  }
  SUBCASE("where one more may go") {
    const auto guard = after_a_soft_eviction(2);
    CHECK(guard->measured({{"a", memory_usage(2)}, {"b", memory_usage(1)}}) == evicts("a"));
    CHECK(guard->pass(3s, memory(1_GiB), {{"a", 2}}) == reads_memory);
  }
}

TEST_CASE("what is only reported counts for no limit once it is done, nor is saved") {
  Guard guard{policy({threshold(MemoryAvailable, "2Gi")}),
              pods({pod("a"), pod("b")}),
              {.back_off = 1min, .max_evictions_per_minute = 1}};
  const Guard::Usages usage{{"a", memory_usage(2)}, {"b", memory_usage(1)}};
  const auto before = guard.synchronizer().state();
  (void)guard.tell(ActingChanged{.acts = false});
  (void)guard.pass(0s, memory(1_GiB));
  REQUIRE(guard.measured(usage) == evicts("a"));
  CHECK(guard.pass(1s, memory(1_GiB)) == Lines{"no more evictions until 1m0s"});
  CHECK(guard.synchronizer().state().rate_limit == before.rate_limit);
  CHECK(guard.synchronizer().state().back_off == before.back_off);

  (void)guard.tell(ActingChanged{.acts = true});
  (void)guard.pass(2s, memory(1_GiB));
  CHECK(guard.measured(usage) == evicts("a"));
  CHECK(guard.synchronizer().state().rate_limit.recent.size() == 1);
}

TEST_CASE("what the node itself can give up is no eviction, and is not limited") {
  Guard guard{policy({threshold(MemoryAvailable, "2Gi"), threshold(NodefsAvailable, "10Gi")}),
              pods({pod("a"), pod("b")}),
              {.max_evictions_per_minute = 1}};
  const auto disk = observed({{NodefsAvailable, 1_GiB, 100_GiB}});
  (void)guard.pass(0s, memory(1_GiB));
  REQUIRE(guard.measured({{"a", memory_usage(2)}, {"b", memory_usage(1)}}) == evicts("a"));
  CHECK(guard.pass(10s, disk).back() == "reclaim node: containers images");
  CHECK(guard.reclaimed(disk) == Lines{"no more evictions until 1m0s"});
  CHECK(guard.everything().back() == "wake at 1m0s");
  CHECK(guard.pass(1min, disk).back() == "reclaim node: containers images");
  CHECK(guard.reclaimed(disk) == Lines{"read pod usage: disk"});
}

TEST_CASE("a look at memory alone does not forget what waits for a disk") {
  // The disk's numbers are those of its last reading.
  const auto looked = [](Duration memory, Duration disk) {
    return observed({{MemoryAvailable, 6_GiB, 8_GiB, memory}, {NodefsAvailable, 1_GiB, 100_GiB, disk}});
  };
  const auto both = policy({threshold(MemoryAvailable, "2Gi"), threshold(NodefsAvailable, "10Gi")});

  SUBCASE("the minute in which no more pods go") {
    Guard guard{both, pods({pod("a"), pod("b")}), {.max_evictions_per_minute = 1}};
    (void)guard.pass(0s, looked(0s, 0s));
    (void)guard.reclaimed(looked(0s, 0s));
    REQUIRE(guard.measured({{"a", fixture::disk_usage(2_GiB)}, {"b", fixture::disk_usage(1)}})
                .back()
                .starts_with("evict default/a"));
    (void)guard.tell(CleanupEnded{"a"});
    (void)guard.pass(10s, looked(10s, 10s));
    REQUIRE(guard.reclaimed(looked(10s, 10s)) == Lines{"no more evictions until 1m0s"});
    REQUIRE(guard.everything().back() == "wake at 1m0s");

    CHECK(guard.pass(11s, looked(11s, 10s)) == Lines{});
    CHECK(std::ranges::none_of(guard.everything(), [](const auto& line) { return line.starts_with("wake at"); }));
    (void)guard.pass(12s, looked(12s, 12s));  // now the disk is looked at
    CHECK(guard.reclaimed(looked(12s, 12s)) == Lines{"no more evictions until 1m0s"});
  }
  SUBCASE("pods that may go") {
    const auto vital = fixture::with_priority(pod("vital"), 2'000'000'000);
    Guard guard{both, pods({vital})};
    (void)guard.pass(0s, looked(0s, 0s));
    (void)guard.reclaimed(looked(0s, 0s));
    (void)guard.measured({{"vital", fixture::disk_usage(2_GiB)}});
    (void)guard.pass(1s, looked(1s, 0s));
    guard.set_pods(pods({vital, pod("new")}));
    CHECK(guard.everything() == Lines{"wake at 1.001s"});
  }
}

TEST_CASE("pods that go while a disk is measured count for the limit of that pass, too") {
  Guard guard{policy({threshold(MemoryAvailable, "2Gi"), threshold(NodefsAvailable, "10Gi")}),
              pods({pod("a"), pod("b")}),
              {.max_evictions_per_minute = 1}};
  const auto low = observed({{NodefsAvailable, 1_GiB, 100_GiB}});
  (void)guard.pass(0s, low);
  (void)guard.reclaimed(low);
  const auto disk = guard.waiting();
  (void)guard.pass(1s, memory(1_GiB));
  REQUIRE(guard.measured({{"a", memory_usage(2)}, {"b", memory_usage(1)}}) == evicts("a"));
  CHECK(guard.answer(disk, PodsMeasured{.usage = {{}, {}}, .fresh = low}) == Lines{"no more evictions until 1m1s"});
}

TEST_CASE("a shortage that is over when the pods are read evicts nobody") {
  Guard guard{policy({threshold(MemoryAvailable, "2Gi")}), pods({pod("hog")})};
  REQUIRE(guard.pass(0s, memory(1_GiB)).back() == reads_memory.front());
  CHECK(guard.measured({{"hog", memory_usage(4_GiB)}}, memory(3_GiB)) == Lines{"recovered: memory.available<2Gi"});
}

TEST_CASE("in the minute after the thresholds changed only so many go, whatever is short") {
  Guard guard{policy({threshold(MemoryAvailable, "2Gi")}), pods({pod("a"), pod("b"), pod("c")})};
  const Guard::Usages usage{{"a", memory_usage(3)}, {"b", memory_usage(2)}, {"c", memory_usage(1)}};
  (void)guard.pass(0s, memory(4_GiB));
  (void)guard.tell(PolicyChanged{policy({threshold(MemoryAvailable, "6Gi")}), 2});
  for (const auto* name : {"a", "b"}) {
    (void)guard.pass(1s, memory(4_GiB));
    REQUIRE(guard.measured(usage) == evicts(name));
    (void)guard.tell(CleanupEnded{name});
  }
  guard.set_pods(pods({pod("c")}));
  CHECK(guard.pass(2s, memory(4_GiB)) == Lines{"no more evictions until 1m0s"});
  CHECK(guard.pass(59s, memory(4_GiB)) == Lines{"no more evictions until 1m0s"});
  (void)guard.pass(60s, memory(4_GiB));
  CHECK(guard.measured(usage) == evicts("c"));
}

TEST_CASE("to go by the same thresholds anew opens no such minute, and ends none") {
  Guard guard{policy({threshold(MemoryAvailable, "6Gi")}), pods({pod("a"), pod("b")})};
  const Guard::Usages usage{{"a", memory_usage(3)}, {"b", memory_usage(2)}};
  const auto anew = PolicyChanged{policy({threshold(MemoryAvailable, "6Gi")}), std::nullopt};
  (void)guard.tell(anew);
  CHECK_FALSE(guard.synchronizer().state().rate_limit.cap);
  (void)guard.tell(PolicyChanged{anew.policy, 1});
  (void)guard.pass(0s, memory(4_GiB));
  REQUIRE(guard.measured(usage) == evicts("a"));
  (void)guard.tell(CleanupEnded{"a"});
  (void)guard.tell(anew);
  guard.set_pods(pods({pod("b")}));
  CHECK(guard.pass(1s, memory(4_GiB)) == Lines{"no more evictions until 1m0s"});
}

TEST_CASE("the minute after a change that was made while decisions were only reported is one all the same") {
  Guard guard{policy({threshold(MemoryAvailable, "2Gi")}), pods({pod("a"), pod("b")})};
  (void)guard.tell(ActingChanged{false});
  (void)guard.tell(PolicyChanged{policy({threshold(MemoryAvailable, "6Gi")}), 1});
  (void)guard.tell(ActingChanged{true});
  (void)guard.pass(1s, memory(4_GiB));
  REQUIRE(guard.measured({{"a", memory_usage(3)}, {"b", memory_usage(2)}}) == evicts("a"));
  (void)guard.tell(CleanupEnded{"a"});
  guard.set_pods(pods({pod("b")}));
  CHECK(guard.pass(2s, memory(4_GiB)) == Lines{"no more evictions until 1m0s"});
}

TEST_CASE("conditions that were seen by thresholds which were only a guess do not outlast it") {
  Guard guard{policy({threshold(MemoryAvailable, "2Gi")}), pods({pod("a")})};
  const auto& synchronizer = guard.synchronizer();
  (void)guard.tell(ActingChanged{false});
  (void)guard.pass(0s, memory(1_GiB));
  CHECK(synchronizer.conditions().contains(NodeCondition::MemoryPressure));
  CHECK(synchronizer.state().pressure.last_observed.empty());  // nor are they saved
  (void)guard.tell(ActingChanged{true});
  SUBCASE("where the thresholds are others") {
    (void)guard.tell(PolicyChanged{policy({threshold(MemoryAvailable, "512Mi")})});
    (void)guard.pass(1s, memory(1_GiB));
    CHECK(synchronizer.conditions().empty());
  }
  SUBCASE("unless it was right") {
    (void)guard.pass(1s, memory(1_GiB));
    CHECK(synchronizer.conditions().contains(NodeCondition::MemoryPressure));
    CHECK(synchronizer.state().pressure.last_observed.size() == 1);
  }
}

TEST_CASE("a start with thresholds of another kind is a change, too") {
  Guard guard{
      policy({threshold(MemoryAvailable, "6Gi")}), pods({pod("a"), pod("b")}), {.evictions_in_first_minute = 1}};
  const Guard::Usages usage{{"a", memory_usage(3)}, {"b", memory_usage(2)}};
  (void)guard.pass(0s, memory(4_GiB));
  REQUIRE(guard.measured(usage) == evicts("a"));
  (void)guard.tell(CleanupEnded{"a"});
  guard.set_pods(pods({pod("b")}));
  CHECK(guard.pass(1s, memory(4_GiB)) == Lines{"no more evictions until 1m0s"});
}

}  // namespace evictd::core::synchronizer_right_amount_test
