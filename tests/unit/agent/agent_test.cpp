#include "agent/agent.hpp"

#include <doctest/doctest.h>

#include "agent/loop.hpp"
#include "fixture/captured_log.hpp"

// The six rules of the loop, as design.md has them.

namespace evictd::agent::agent_test {
namespace {

using namespace std::chrono_literals;
using fixture::observed;
using fixture::operator""_GiB;
using fixture::operator""_MiB;

/// What is done in the turn of the reactor in which this step is; empty if it never comes.
Steps turn_with(Loop& loop, const std::string& step) {
  loop.reactor.restart();
  do {
    loop.steps.clear();
    if (loop.reactor.poll_one() == 0) return {};
  } while (!loop.did(step));
  return loop.steps;
}

const Steps looks_and_goes_on{"read node", "save"};
const Steps evicts_a{"read node", "read pods", "read memory again", "intend a", "save", "stop a", "save"};

Steps operator+(Steps first, const Steps& then) {
  first.insert(first.end(), then.begin(), then.end());
  return first;
}

class NoneListed final : public ListedPods {
 public:
  [[nodiscard]] bool contains(const pods::NamedUid&) const override { return false; }
  [[nodiscard]] bool goes(const pods::NamedUid&) const override { return false; }
};

}  // namespace

TEST_CASE("rule 1: a wake-up trusts no number that is older than itself") {
  Loop loop;
  loop.start();
  CHECK(loop.wake() == looks_and_goes_on);
  loop.observer.now = Loop::memory(100);
  CHECK(loop.wake() == evicts_a + looks_and_goes_on);  // and once more: is there still too little?
}

TEST_CASE("rule 1: however often sources speak meanwhile, one reading answers all of them") {
  Loop loop;
  loop.start();
  loop.wakes.notify({core::WakeSource::Memcg, "", loop.clock.now()});
  loop.wakes.notify({core::WakeSource::Psi, "", loop.clock.now()});
  CHECK(loop.wake(core::WakeSource::Sampler) == looks_and_goes_on);
}

TEST_CASE("rule 1: a pass whose node cannot be read does nothing, and the next one is none the worse") {
  Loop loop;
  loop.start();
  loop.observer.broken = true;
  loop.observer.now = Loop::memory(100);
  CHECK(loop.wake() == Steps{"read node"});
  loop.observer.broken = false;
  CHECK(loop.wake() == evicts_a + looks_and_goes_on);
}

TEST_CASE("rule 2: the node comes first, and pods are read when somebody has to go") {
  Loop loop;
  loop.start();
  loop.observer.now = Loop::memory(1025);
  CHECK(loop.wake() == looks_and_goes_on);
  loop.observer.now = Loop::memory(1023);
  CHECK(loop.wake() == evicts_a + looks_and_goes_on);
}

TEST_CASE("rule 2: where the kernel told of memory alone, memory alone is read") {
  Loop loop;
  loop.start();
  loop.wake(core::WakeSource::Memcg);
  loop.wake(core::WakeSource::Tripwire);
  CHECK(loop.observer.of_memory_alone == 2);
  loop.wake(core::WakeSource::Sampler);  // of whatever it sampled
  loop.wake(core::WakeSource::Timer);
  loop.wakes.notify({core::WakeSource::Memcg, "", loop.clock.now()});
  loop.wake(core::WakeSource::Psi);
  CHECK(loop.observer.of_memory_alone == 2);
}

TEST_CASE("rule 2: nobody goes if the shortage is over once the pods are read") {
  Loop loop;
  loop.start();
  loop.observer.now = Loop::memory(100);
  loop.observer.again = Loop::memory(2048);
  CHECK(loop.wake() == Steps{"read node", "read pods", "read memory again", "recovered", "save"});
}

TEST_CASE("rules 3 and 7: from the counters to the kill it is one turn of the reactor, whatever hangs") {
  Loop loop;
  loop.observer.disks_hang = true;  // and the runtime does not answer
  loop.start();
  loop.observer.now = Loop::memory(100);
  loop.wakes.notify({core::WakeSource::Memcg, "", loop.clock.now()});
  CHECK(turn_with(loop, "stop a") == evicts_a + looks_and_goes_on);
}

TEST_CASE("rules 3 and 7: memory does not wait for a disk that is being measured") {
  Loop loop{{}, core::Signal::NodefsAvailable};
  loop.start();
  loop.observer.disks_hang = true;
  loop.observer.now = observed({{core::Signal::NodefsAvailable, 0, 100_GiB}});
  loop.wake();  // the node is reclaimed first, by a runtime that is not there
  loop.agent.change_policy({.thresholds = {fixture::threshold(core::Signal::NodefsAvailable, "1Gi"),
                                           fixture::threshold(core::Signal::MemoryAvailable, "1Gi")},
                            .local_storage_isolation = false},
                           0);
  loop.observer.now =
      observed({{core::Signal::NodefsAvailable, 0, 100_GiB}, {core::Signal::MemoryAvailable, 0, 8_GiB}});
  loop.wakes.notify({core::WakeSource::Memcg, "", loop.clock.now()});
  CHECK(turn_with(loop, "stop a") == evicts_a + looks_and_goes_on);
}

TEST_CASE("rule 4: the intent is saved before the kill, what came of it is recorded after it") {
  Loop loop;
  loop.start();
  loop.stopper.kills_at_once = true;
  loop.observer.now = Loop::memory(100);
  const Steps to_the_kill{"read node", "read pods", "read memory again", "intend a", "save", "stop a", "killed a",
                          "save",      "save"};
  CHECK(loop.wake() == to_the_kill + looks_and_goes_on);
}

TEST_CASE("rule 5: while a victim's memory covers what is short, no second one goes for the same bytes") {
  Loop loop;
  loop.usage.working_sets["b"] = 1_GiB;
  loop.start();
  loop.observer.now = Loop::memory(100);
  loop.wake();
  CHECK(loop.wake() == looks_and_goes_on);

  loop.usage.working_sets["a"] = 0;  // it is back, and not enough
  CHECK(loop.wake() == Steps{"read node", "read pods", "read memory again", "intend b", "save", "stop b", "save",
                             "read node", "save"});
}

TEST_CASE("rule 5: what the victim gives back while the node is read makes nobody else go") {
  Loop loop;
  loop.start();
  loop.observer.now = Loop::memory(100);
  loop.wake();
  loop.observer.on_read = [&] { loop.usage.working_sets["a"] = 0; };
  CHECK(loop.wake() == looks_and_goes_on);
}

TEST_CASE("rule 5: what is short beyond the victim's memory takes the next one at once") {
  Loop loop;
  loop.start();
  loop.usage.working_sets = {{"a", 500_MiB}, {"b", 400_MiB}};
  loop.observer.now = Loop::memory(0);
  loop.wake();
  CHECK(loop.did("stop a"));
  CHECK(loop.did("stop b"));
}

TEST_CASE("rule 6: a list of pods that may name the real culprit is waited for 150 ms at most") {
  Loop loop;
  loop.unlisted.look(NoneListed{});
  REQUIRE(loop.tracker.largest_stray() == 3_GiB);
  loop.start();
  loop.observer.now = Loop::memory(800);
  CHECK(loop.wake() == Steps{"read node", "read pods", "read memory again", "save"});
  loop.clock.advance(149ms);
  CHECK_FALSE(loop.did("stop a"));
  loop.clock.advance(1ms);
  CHECK(loop.did("stop a"));
}

TEST_CASE("rule 6: the end waits five seconds at most for what is under way, and begins nothing more") {
  Loop loop;
  loop.start();
  loop.observer.now = Loop::memory(100);
  loop.wake();
  loop.agent.stop();
  loop.clock.settle();
  CHECK_FALSE(loop.ended);
  loop.usage.working_sets["a"] = 0;
  CHECK(loop.wake().empty());
  loop.clock.advance(5s);
  CHECK(loop.ended);
}

TEST_CASE("rule 6: an eviction that does not end is given up, and another pod goes") {
  Loop loop;
  loop.start();
  loop.observer.now = Loop::memory(100);
  loop.wake();
  loop.steps.clear();
  loop.stopper.report("a", FakeStopper::ended(true));
  loop.clock.settle();
  CHECK(loop.did("stop b"));
}

TEST_CASE("after every reading all sources are armed by the levels that matter") {
  Loop loop;
  loop.start();
  REQUIRE_FALSE(loop.wake_source->armed.empty());
  const auto& arming = loop.wake_source->armed.back();
  REQUIRE(arming.levels.size() == 1);
  CHECK(arming.levels.front().signal == core::Signal::MemoryAvailable);
  CHECK(arming.levels.front().threshold == 1_GiB);
  CHECK(arming.levels.front().available == 4_GiB);
  CHECK_FALSE(arming.releasing);

  loop.observer.now = Loop::memory(100);
  loop.stopper.kills_at_once = true;
  loop.wake();
  CHECK(loop.wake_source->armed.back().releasing);
}

TEST_CASE("all sources hear when something is short and nobody may go for it") {
  Loop loop;
  loop.start();
  core::Turn turn{loop.reason(core::WakeSource::Other)};
  loop.decider.tell(core::PodsChanged{std::make_shared<core::PodList>()}, turn);
  loop.observer.now = Loop::memory(100);
  loop.wake();
  CHECK(loop.wake_source->armed.back().nobody_goes);
  loop.observer.now = Loop::memory(4096);
  loop.wake();
  CHECK_FALSE(loop.wake_source->armed.back().nobody_goes);

  loop.decider.tell(core::PodsChanged{std::make_shared<core::PodList>(fixture::pods({fixture::pod("b")}))}, turn);
  loop.observer.now = Loop::memory(100);
  loop.wake();
  CHECK(loop.did("stop b"));
  CHECK_FALSE(loop.wake_source->armed.back().nobody_goes);
}

TEST_CASE("other thresholds act at once") {
  Loop loop;
  loop.start();
  loop.observer.now = Loop::memory(3000);
  loop.agent.change_policy(
      {.thresholds = {fixture::threshold(core::Signal::MemoryAvailable, "4Gi")}, .local_storage_isolation = false}, 0);
  CHECK(loop.did("stop a"));
}

TEST_CASE("what only the fallback timer saw, every notifier missed") {
  Loop loop;
  loop.start();
  loop.observer.now = Loop::memory(100);
  loop.wake(core::WakeSource::Timer);
  CHECK(loop.fallback.status().front().detail == "1 crossings missed by every notifier");
  CHECK(loop.log.crossings == 1);
}

TEST_CASE("a dry run decides and stops nobody") {
  Loop loop{{.dry_run = true}};
  loop.start();
  loop.observer.now = Loop::memory(100);
  loop.wake();
  CHECK(loop.did("intend a"));
  CHECK(loop.stopper.begun.empty());
}

TEST_CASE("the cluster hears that a threshold is met whether or not anybody may go for it") {
  const auto told = [](Loop& loop) { return loop.cluster.status().waiting; };
  SUBCASE("a pod goes") {
    Loop loop;
    loop.start();
    CHECK(told(loop) == 0);
    loop.observer.now = Loop::memory(100);
    loop.wake();
    CHECK(loop.did("stop a"));
    CHECK(told(loop) == 1);
  }
  SUBCASE("there is no pod") {
    Loop loop;
    loop.start();
    core::Turn turn{loop.reason(core::WakeSource::Other)};
    loop.decider.tell(core::PodsChanged{std::make_shared<core::PodList>()}, turn);
    loop.observer.now = Loop::memory(100);
    loop.wake();
    CHECK(told(loop) == 1);
  }
  SUBCASE("none of the pods may go") {
    Loop loop;
    loop.start();
    core::Turn turn{loop.reason(core::WakeSource::Other)};
    loop.decider.tell(core::PodsChanged{std::make_shared<core::PodList>(
                          fixture::pods({fixture::with_priority(fixture::pod("a"), 2'000'000'000)}))},
                      turn);
    loop.observer.now = Loop::memory(100);
    loop.wake();
    CHECK(loop.stopper.begun.empty());
    CHECK(told(loop) == 1);
  }
  SUBCASE("the node is reclaimed first, by a runtime that is not there") {
    Loop loop{{}, core::Signal::NodefsAvailable};
    loop.start();
    loop.observer.disks_hang = true;
    loop.observer.now = observed({{core::Signal::NodefsAvailable, 0, 100_GiB}});
    loop.wake();
    CHECK(told(loop) == 1);
  }
  SUBCASE("a dry run does nothing about it") {
    Loop loop{{.dry_run = true}};
    loop.start();
    loop.observer.now = Loop::memory(100);
    loop.wake();
    CHECK(told(loop) == 0);
  }
}

TEST_CASE("that a disk is short, and nobody goes before the disks' layout is known, is a warning, once") {
  Loop loop{{.knows_layout = false}, core::Signal::NodefsAvailable};
  loop.start();
  const fixture::CapturedLog log;
  loop.wake();
  CHECK(log.lines().empty());
  loop.observer.now = observed({{core::Signal::NodefsAvailable, 0, 100_GiB}});
  loop.wake();
  loop.wake();
  CHECK(log.lines() == Steps{"a disk is short, and nothing is done about it: it is not known yet whether images have a "
                             "disk of their own"});
  CHECK_FALSE(loop.did("read disks"));
}

}  // namespace evictd::agent::agent_test
