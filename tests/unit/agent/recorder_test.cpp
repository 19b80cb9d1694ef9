#include "agent/recorder.hpp"

#include <doctest/doctest.h>
#include <evictd.pb.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "events/event_log.hpp"
#include "fixture/node.hpp"
#include "fixture/pods.hpp"

namespace evictd::agent::recorder_test {
namespace {

using enum core::Signal;

struct Recorded {
  boost::asio::io_context reactor{1};
  events::EventLog log{reactor.get_executor()};
  Recorder recorder{log};
  const core::Turn turn{.wake = {.time = {}, .reasons = {{core::WakeSource::Other, "", {}}}}};

  void no_victim(core::Signal signal, std::size_t looked_at) {
    core::NoVictim none{.acted = acted(signal), .ranking = {}};
    none.ranking.resize(looked_at);
    recorder.no_victim(none, turn);
  }
  static core::Acted acted(core::Signal signal) {
    return {.threshold = fixture::threshold(signal, "1Gi"), .observation = {.available = 1, .capacity = 2}};
  }
  void intended(core::Eviction eviction, core::Duration decided, bool dry_run = false) {
    auto turn_of_it = turn;
    turn_of_it.reach(core::Stage::Decided, turn.wake.time + decided);
    eviction.pod = std::make_shared<core::Pod>(fixture::pod("bloat"));
    static_cast<void>(recorder.intended(std::move(eviction), turn_of_it, dry_run));
  }
  v1::Event last() {
    v1::Event result;
    const auto subscription = log.subscribe(0, [] {});
    while (const auto next = subscription->next()) result = *next;
    return result;
  }
  v1::EvictionIntended last_intent() {
    const auto event = last();
    REQUIRE(event.kind() == v1::Event::EVICTION_INTENDED);
    return event.eviction_intended();
  }
  std::vector<std::string> failures() {
    std::vector<std::string> result;
    const auto subscription = log.subscribe(0, [] {});
    while (const auto next = subscription->next())
      if (next->kind() == v1::Event::EVICTION_FAILED) result.push_back(next->message());
    return result;
  }
};

}  // namespace

TEST_CASE("that no pod may be evicted is told once a shortage, however many pods were looked at") {
  Recorded recorded;
  for (const std::size_t count : {3, 4, 3, 5}) {
    recorded.no_victim(MemoryAvailable, count);
    recorded.no_victim(PidAvailable, count);
  }
  CHECK(recorded.failures() ==
        std::vector<std::string>{
            "memory.available<1Gi: no pod may be evicted (3 looked at, all critical or on their way out)",
            "pid.available<1Gi: no pod may be evicted (3 looked at, all critical or on their way out)"});
  recorded.recorder.crossed({Recorded::acted(MemoryAvailable)}, recorded.turn);
  recorded.no_victim(MemoryAvailable, 3);
  CHECK(recorded.failures().size() == 3);
}

TEST_CASE("an intent tells how old the numbers were that it goes by") {
  using namespace std::chrono_literals;
  Recorded recorded;
  auto acted = Recorded::acted(MemoryAvailable);

  recorded.intended({.cause = MemoryAvailable, .acted = acted}, 7ms);
  CHECK_FALSE(recorded.last_intent().has_observation_age());  // when they were read is not known

  acted.observation.time = recorded.turn.wake.time + 2ms;
  recorded.intended({.cause = MemoryAvailable, .acted = acted}, 7ms);
  CHECK(recorded.last_intent().observation_age().nanos() == 5'000'000);

  acted.observation.time = recorded.turn.wake.time - 3s;  // a disk's, from an earlier pass
  recorded.intended({.cause = MemoryAvailable, .acted = acted}, 7ms);
  CHECK(recorded.last_intent().observation_age().seconds() == 3);
  CHECK(recorded.last_intent().observation_age().nanos() == 7'000'000);

  recorded.intended({.cause = core::Displacement::Preemption}, 7ms);
  CHECK_FALSE(recorded.last_intent().has_observation_age());  // it goes by no numbers
}

TEST_CASE("an intent tells of how many were compared, and shows the first of them") {
  Recorded recorded;
  const auto hog = std::make_shared<core::Pod>(fixture::pod("hog"));
  core::Eviction eviction{.cause = MemoryAvailable, .acted = Recorded::acted(MemoryAvailable)};
  eviction.message.text = "The node was low on resource: memory.";
  for (std::int64_t usage = 20; usage > 0; --usage) eviction.ranking.push_back({.pod = hog, .usage = usage});
  recorded.intended(eviction, {});
  const auto intent = recorded.last_intent();
  CHECK(intent.candidates() == 20);
  REQUIRE(intent.ranking_size() == 16);
  CHECK(intent.ranking(0).usage() == 20);
  CHECK(intent.ranking(15).usage() == 5);
  CHECK(intent.threshold().resolved() == 1 << 30);
  CHECK(intent.observation().available() == 1);
  CHECK(recorded.last().message() == "evicting default/bloat: The node was low on resource: memory.");
  recorded.intended(eviction, {}, true);
  CHECK(recorded.last().message().starts_with("(dry run) evicting default/bloat: "));
}

TEST_CASE("what is done to a pod has a word of its own for each cause") {
  Recorded recorded;
  recorded.intended({.cause = core::Displacement::Preemption}, {});
  CHECK(recorded.last().message().starts_with("preempting "));
  recorded.intended({.cause = core::Displacement::NodeShutdown}, {});
  CHECK(recorded.last().message().starts_with("terminating "));
}

TEST_CASE("a rehearsal of an eviction is told to nobody, and leaves the next one as it would have been") {
  Recorded recorded;
  evict::EvictionRecord record;
  record.pod = std::make_shared<core::Pod>(fixture::pod("bloat"));
  record.cause = MemoryAvailable;
  record.acted = Recorded::acted(MemoryAvailable);
  record.turn = recorded.turn;
  recorded.recorder.rehearse(record);
  CHECK(recorded.log.last_number() == 0);
  recorded.no_victim(MemoryAvailable, 3);
  recorded.recorder.rehearse(record);
  recorded.no_victim(MemoryAvailable, 3);
  CHECK(recorded.failures().size() == 1);  // the shortage goes on
  CHECK(recorded.recorder.latencies().histograms().empty());
  recorded.intended({.cause = MemoryAvailable, .acted = record.acted}, std::chrono::milliseconds(7));
  CHECK(recorded.log.last_number() == 2);
}

TEST_CASE("an explanation is an event of its eviction, and what was held is kept for the journal") {
  Recorded recorded;
  const auto hog = std::make_shared<core::Pod>(fixture::pod("hog"));
  core::Eviction eviction{.pod = hog,
                          .cause = MemoryAvailable,
                          .acted = Recorded::acted(MemoryAvailable),
                          .ranking = {{.pod = hog, .usage = 512 << 20}}};
  auto record = recorded.recorder.intended(std::move(eviction), recorded.turn, false);
  const auto snapshot = std::make_shared<const node::PodMemorySnapshot>(
      node::PodMemorySnapshot{.usage = 512 << 20, .processes = {{"web", 500 << 20, 500 << 20, 0}}});
  recorded.recorder.explained(record, {.found = {.snapshot = snapshot, .growth = {}}});

  std::vector<v1::Event> events;
  const auto subscription = recorded.log.subscribe(0, [] {});
  while (const auto next = subscription->next()) events.push_back(*next);
  REQUIRE(events.size() == 2);
  CHECK(events[1].kind() == v1::Event::EXPLAINED);
  CHECK(events[1].eviction_id() == events[0].sequence());
  CHECK(events[1].pod().name() == "hog");
  CHECK(events[1].signal() == "memory.available");
  CHECK(events[1].message() == "default/hog: held 512.0 MiB (web 500.0 MiB)");
  CHECK(events[1].explained().snapshot().processes(0).command() == "web");
  CHECK(record.snapshot == snapshot);
}

TEST_CASE("of a pod that is frozen while others are asked their answers alone are told") {
  Recorded recorded;
  evict::EvictionRecord record;
  record.pod = std::make_shared<core::Pod>(fixture::pod("bloat"));
  record.cause = MemoryAvailable;
  record.turn = recorded.turn;
  recorded.recorder.progress(record, evict::Braked{.frozen = true});
  recorded.recorder.progress(record, evict::HooksAsked{});
  recorded.recorder.progress(record, evict::Braked{.phase = evict::Braked::Phase::killed, .frozen = true});
  const auto subscription = recorded.log.subscribe(0, [] {});
  const auto only = subscription->next();
  REQUIRE(only != nullptr);
  CHECK(only->kind() == v1::Event::HOOKS_ASKED);
  CHECK(subscription->next() == nullptr);
}

}  // namespace evictd::agent::recorder_test
