#include "agent/explanation.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fixture/node.hpp"
#include "fixture/pods.hpp"

namespace evictd::agent::explanation_test {
namespace {

using namespace std::chrono_literals;
using core::Signal;
using fixture::pod;
using fixture::with_priority;
using fixture::operator""_GiB;
using fixture::operator""_MiB;

core::RankedPod ranked(core::Pod pod, std::int64_t usage, std::int64_t request = 0) {
  return {.pod = std::make_shared<const core::Pod>(std::move(pod)), .usage = usage, .request = request};
}

/// memory.available<1Gi with `available` left; the first of these goes.
evict::EvictionRecord record(std::vector<core::RankedPod> ranking, std::int64_t available = 1_GiB - 50_MiB) {
  evict::EvictionRecord result;
  result.pod = ranking.front().pod;
  result.cause = Signal::MemoryAvailable;
  result.acted =
      core::Acted{fixture::threshold(Signal::MemoryAvailable, "1Gi"), {.available = available, .capacity = 8_GiB}};
  result.ranking = std::move(ranking);
  return result;
}

v1::EvictionReason why(const evict::EvictionRecord& record, const Evidence& evidence = {}) {
  return explain(record, evidence).why();
}

std::vector<std::string> lines(const v1::EvictionReason& why) { return {why.saved_by().begin(), why.saved_by().end()}; }

node::PodMemorySnapshot snapshot() {
  return {.time = core::Instant{10s},
          .usage = 700_MiB,
          .processes = {{"postgres", 600_MiB, 500_MiB, 50_MiB}, {"sh", 20_MiB, 20_MiB, 0}},
          .processes_read = 2,
          .rows = {{"anon", 520_MiB}, {"shmem", 60_MiB}},
          .staying = 10_MiB,
          .node_stall = node::MemoryStall{.some_10 = 1.5}};
}

}  // namespace

TEST_CASE("between two pods over their requests a request lets the other one go first, and the smallest is told") {
  const auto told = why(record({ranked(pod("hog"), 600_MiB, 100_MiB), ranked(pod("meek"), 200_MiB, 100_MiB)}));
  CHECK(told.next().pod().name() == "meek");
  CHECK(told.rule() == "it was further over its request: by 500.0 MiB, not 100.0 MiB");
  CHECK(told.saving_request() == 501_MiB);
  CHECK(told.saving_limit() == 550_MiB);
  CHECK(told.saving_threshold() == 974_MiB);
  CHECK(lines(told) ==
        std::vector<std::string>{
            "a memory request of at least 501Mi: default/meek would have gone in its place",
            "a memory limit of at most 550Mi: the kernel would have held it there, at its own cost, and the node would "
            "not have been short",
            "a threshold of at most 974Mi on memory.available: it would not have been met yet"});
}

TEST_CASE("a pod of higher priority would have had to be within its request") {
  const auto told = why(record({ranked(with_priority(pod("hog"), 10), 600_MiB, 100_MiB),
                                ranked(with_priority(pod("meek"), 5), 90_MiB, 100_MiB)}));
  CHECK(told.rule() == "it used more than it asked for, and the next one did not");
  CHECK(told.saving_request() == 600_MiB);
}

TEST_CASE("no request is told where none would have helped") {
  // Its priority is lower than that of the other one, which is within its request.
  const auto lower =
      why(record({ranked(pod("hog"), 600_MiB, 100_MiB), ranked(with_priority(pod("meek"), 5), 90_MiB, 100_MiB)}));
  CHECK_FALSE(lower.has_saving_request());
  CHECK(lower.saved_by(0) == "no request: default/meek would not have gone before it with any");
  // The other one held less than what was missing: both would have gone.
  const auto little = why(record({ranked(pod("hog"), 600_MiB), ranked(pod("meek"), 20_MiB)}));
  CHECK_FALSE(little.has_saving_request());
  CHECK(little.saved_by(0) ==
        "no request: with 581Mi default/meek would have gone first, but it held 20.0 MiB and 50.0 MiB were missing");
  // There is no other one.
  const auto alone = why(record(
      {ranked(pod("hog"), 600_MiB), ranked(with_priority(pod("vital"), core::system_critical_priority), 1_GiB)}));
  CHECK_FALSE(alone.has_next());
  CHECK(alone.saved_by(0) == "no request: no other pod could have gone in its place");
}

TEST_CASE("no limit and no threshold is told where none would have helped") {
  const auto told = why(record({ranked(pod("hog"), 600_MiB), ranked(pod("meek"), 500_MiB)}, 0));
  CHECK_FALSE(told.has_saving_limit());
  CHECK_FALSE(told.has_saving_threshold());
  CHECK(told.saved_by(1) == "no limit: the node would have been short without it, too");
  CHECK(told.saved_by(2) == "no threshold: nothing was available any more");
}

TEST_CASE("the rule that put two pods apart is the first that tells them apart") {
  const auto rule = [](core::RankedPod first, core::RankedPod next) {
    return why(record({std::move(first), std::move(next)})).rule();
  };
  auto unknown = ranked(pod("a"), 0);
  unknown.has_stats = false;
  CHECK(rule(unknown, ranked(pod("b"), 5_MiB)) == "its memory could not be measured, so it goes first");
  CHECK(rule(ranked(pod("a"), 5_MiB), ranked(with_priority(pod("b"), 7), 9_MiB)) == "its priority is lower: 0, not 7");
  CHECK(rule(ranked(pod("a"), 80_MiB, 100_MiB), ranked(pod("b"), 50_MiB, 100_MiB)) ==
        "it was nearer to its request: 20.0 MiB below it, not 50.0 MiB");
  CHECK(rule(ranked(pod("a"), 5_MiB), ranked(pod("b"), 5_MiB)) == "nothing tells the two apart");
  CHECK(rule(ranked(pod("a"), 5_MiB), ranked(pod("b"), 9_MiB)) ==
        "by its numbers it goes first, but not before all others did");
}

TEST_CASE("how long the rest would have lasted is told where memory went fast") {
  const Evidence evidence{
      .node_available = {{core::Instant{0s}, 3_GiB}, {core::Instant{5s}, 2_GiB}, {core::Instant{15s}, 1_GiB}}};
  const auto told = why(record({ranked(pod("hog"), 600_MiB), ranked(pod("meek"), 500_MiB)}, 512_MiB), evidence);
  CHECK(told.saved_by(2) ==
        "a threshold of at most 512Mi on memory.available: it would not have been met yet; at 102.4 MiB a second "
        "nothing would have been left 5.0 s later");
}

TEST_CASE("what was seen is told as it is, with its age, and shortly in one line") {
  const Evidence evidence{.found = {std::make_shared<const node::PodMemorySnapshot>(snapshot()),
                                    {{core::Instant{9s}, 500_MiB}, {core::Instant{10s}, 700_MiB}}},
                          .node_available = {{core::Instant{11s}, 1_GiB}},
                          .killed = core::Instant{11500ms}};
  const auto told = explain(record({ranked(pod("hog"), 600_MiB), ranked(pod("meek"), 200_MiB)}), evidence);
  const auto& seen = told.snapshot();
  CHECK(seen.taken_before_kill().seconds() == 1);
  CHECK(seen.taken_before_kill().nanos() == 500'000'000);
  CHECK(seen.processes(0).command() == "postgres");
  CHECK(seen.processes(0).anon() == 500_MiB);
  CHECK(seen.memory(1).name() == "shmem");
  CHECK(seen.staying() == 10_MiB);
  CHECK(seen.pod_usage(0).before_kill().seconds() == 2);
  CHECK(seen.node_available(0).bytes() == 1_GiB);
  CHECK(seen.node_stall().some_avg10() == 1.5);
  CHECK_FALSE(seen.has_pod_stall());
  CHECK_FALSE(seen.more_processes());
  CHECK(explanation_line("default/hog", told) ==
        "default/hog: held 700.0 MiB (postgres 600.0 MiB, sh 20.0 MiB); before default/meek: it was further over its "
        "request: by 600.0 MiB, not 200.0 MiB; a memory request of at least 401Mi: default/meek would have gone in its "
        "place");
}

TEST_CASE("what is not known is left out: after a restart, and of a pod that nobody saw") {
  auto restored = record({ranked(pod("hog"), 600_MiB)});
  restored.ranking.clear();
  const auto told = explain(restored, {});
  CHECK(told.why().saved_by().empty());
  CHECK_FALSE(told.why().has_next());
  CHECK_FALSE(told.snapshot().has_taken_before_kill());
  CHECK(explanation_line("default/hog", told) == "default/hog: what it held was not seen");
}

TEST_CASE("evictions for disks, limits of a pod's own and others' need are none for memory") {
  auto other = record({ranked(pod("hog"), 600_MiB)});
  CHECK(is_for_memory(other));
  other.cause = Signal::AllocatableMemoryAvailable;
  CHECK(is_for_memory(other));
  other.cause = Signal::NodefsAvailable;
  CHECK_FALSE(is_for_memory(other));
  other.cause = core::Displacement::Preemption;
  CHECK_FALSE(is_for_memory(other));
}

}  // namespace evictd::agent::explanation_test
