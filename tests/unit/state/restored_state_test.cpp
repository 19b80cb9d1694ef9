#include "state/restored_state.hpp"
#include "state/state_writer.hpp"

#include <doctest/doctest.h>
#include <state.pb.h>

#include <chrono>
#include <string>

#include "fixture/random.hpp"

namespace evictd::state::restored_state_test {
namespace {

using namespace std::chrono_literals;
using fixture::Random;

core::Instant any_time(Random& random) {
  return core::Instant{core::Duration{random.between(1, std::int64_t{1} << 62)}};
}
std::string any_name(Random& random) { return "pod-" + std::to_string(random.between(0, 1'000'000)); }

core::Threshold any_threshold(Random& random) {
  core::Threshold threshold{.signal = core::all_signals()[static_cast<std::size_t>(random.between(0, 8))]};
  if (random.chance(50))
    threshold.value = {core::Percentage{static_cast<float>(random.between(1, 9999)) / 10'000}};
  else
    threshold.value = {core::Quantity::bytes(random.between(1, std::int64_t{1} << 50))};
  if (random.chance(50)) threshold.grace = core::Duration{random.between(1, 1'000'000'000'000)};
  return threshold;
}

core::EvictionCause any_cause(Random& random) {
  switch (random.between(0, 2)) {
    case 0: return any_threshold(random).signal;
    case 1:
      return random.pick(
          {core::LocalStorageLimit::EmptyDir, core::LocalStorageLimit::Pod, core::LocalStorageLimit::Container});
    default: return random.pick({core::Displacement::Preemption, core::Displacement::NodeShutdown});
  }
}

core::Synchronizer::State any_state(Random& random) {
  core::Synchronizer::State state;
  for (auto n = random.between(0, 4); n > 0; --n) {
    state.pressure.met.push_back({any_threshold(random), any_time(random)});
    state.pressure.acting.push_back(any_threshold(random));
    state.in_flight.push_back({.uid = any_name(random),
                               .cause = any_cause(random),
                               .grace_period = core::Duration{random.between(0, 1'000'000)},
                               .remaining = random.magnitude(),
                               .known = random.chance(50),
                               .state = random.pick({core::InFlight::State::releasing, core::InFlight::State::released,
                                                     core::InFlight::State::stuck})});
    state.back_off[any_name(random)] = {
        .until = any_time(random), .by = core::rank_by(any_threshold(random).signal), .usage = random.magnitude()};
    state.rate_limit.recent.push_back(any_time(random));
  }
  using enum core::NodeCondition;
  for (const auto condition : {DiskPressure, MemoryPressure, PidPressure})
    if (random.chance(50)) state.pressure.last_observed.emplace_back(condition, any_time(random));
  if (random.chance(50))
    state.rate_limit.cap = {.left = static_cast<std::size_t>(random.between(0, 9)), .until = any_time(random)};
  state.layout = {.dedicated_imagefs = random.chance(50), .split = random.chance(50)};
  state.layout_known = random.chance(50);
  state.containerfs_derived = random.chance(50);
  return state;
}

/// Through bytes, as the file has them.
template <class Message>
Message again(const Message& message) {
  Message read;
  REQUIRE(read.ParseFromString(message.SerializeAsString()));
  return read;
}

evict::EvictionRecord any_record(Random& random) {
  const auto pod = std::make_shared<core::Pod>(core::Pod{.name_space = "space", .name = any_name(random), .uid = "u"});
  pod->annotations = {{"kubernetes.io/config.source", "file"}};
  auto runtime = std::make_shared<pods::RuntimePod>();
  runtime->pod = pod;
  runtime->sandbox_id = "sandbox";
  runtime->cgroup = "/kubepods/podu";
  runtime->containers = {{.id = "c1", .name = "main", .state = pods::ContainerState::Running, .cgroup = "/c1"},
                         {.id = "c2", .name = "init", .state = pods::ContainerState::Exited}};
  evict::EvictionRecord record{{.pod = pod, .cause = any_cause(random)}, {}};
  record.id = 42;
  record.turn.wake.time = any_time(random);
  record.turn.wake.reasons.push_back({core::WakeSource::Memcg, "memory.available", any_time(random)});
  record.turn.stages = {{core::Stage::Decided, 3us},
                        {core::Stage::Killed, core::Duration{random.between(1, 1'000'000)}}};
  if (random.chance(50))
    record.acted = {any_threshold(random), {.available = 1, .capacity = 2, .time = any_time(random)}};
  if (random.chance(50)) record.disk_release = {core::Signal::NodefsAvailable, random.between(0, 1 << 30), 7};
  record.expected_release = random.between(0, 1 << 30);
  record.grace_period = core::Duration{random.between(0, 1'000'000'000)};
  record.runtime = runtime;
  record.begun = any_time(random);
  record.killed = random.chance(50);
  record.released = random.chance(50);
  record.gone = random.chance(50);
  record.given_time = static_cast<evict::GivenTime>(random.between(0, 2));
  record.held = random.between(0, 1 << 30);
  record.message = {"The node was low on resource: memory.", {{"offending_containers", "main"}}};
  return record;
}

}  // namespace

TEST_CASE("property: the state machine's state comes back as it was") {
  for (const auto seed : fixture::seeds(300)) {
    CAPTURE(seed);
    Random random{seed};
    const auto state = any_state(random);
    CHECK(restored(again(keep(state))) == state);
  }
}

TEST_CASE("property: an eviction comes back with all that finishing it and telling of it takes") {
  for (const auto seed : fixture::seeds(100)) {
    CAPTURE(seed);
    Random random{seed};
    const auto record = any_record(random);
    const auto found = restored(again(keep(record)));
    REQUIRE(found.has_value());
    CHECK(found->id == record.id);
    CHECK(*found->pod == *record.pod);
    CHECK(found->cause == record.cause);
    CHECK(found->turn.wake.time == record.turn.wake.time);
    REQUIRE(found->turn.wake.reasons.size() == 1);
    CHECK(found->turn.wake.source() == core::WakeSource::Memcg);
    CHECK(found->turn.wake.reasons.front().time == record.turn.wake.reasons.front().time);
    CHECK(found->turn.stages == record.turn.stages);
    CHECK(found->acted == record.acted);
    CHECK(found->expected_release == record.expected_release);
    CHECK(found->disk_release == record.disk_release);
    CHECK(found->grace_period == record.grace_period);
    CHECK(found->begun == record.begun);
    CHECK(found->killed == record.killed);
    CHECK(found->released == record.released);
    CHECK(found->gone == record.gone);
    CHECK(found->given_time == record.given_time);
    CHECK(found->held == record.held);
    CHECK(found->message == record.message);
    CHECK(found->runtime->pod == found->pod);
    CHECK(found->runtime->sandbox_id == "sandbox");
    CHECK(found->runtime->cgroup == "/kubepods/podu");
    REQUIRE(found->runtime->containers.size() == 2);
    CHECK(found->runtime->containers[0].cgroup == "/c1");
    CHECK(found->runtime->containers[1].state == pods::ContainerState::Exited);
  }
}

TEST_CASE("what was taken away by a call comes back as taken away") {
  core::ThresholdOverlay overlay;
  overlay.hard = {{"memory.available", "200Mi"}, {"pid.available", std::nullopt}};
  overlay.soft = {{"memory.available", "300Mi"}};
  overlay.soft_grace_period = {{"memory.available", "1m30s"}};
  overlay.minimum_reclaim = {{"nodefs.available", "1Gi"}};
  CHECK(restored(again(keep(overlay))) == overlay);
}

TEST_CASE("what a message does not make sense of is left out") {
  state::v1::Synchronizer kept;
  kept.add_acting()->set_signal("memory.unheard-of");
  kept.add_met()->mutable_threshold()->set_signal("memory.available");  // without a value
  kept.add_in_flight()->set_cause("sheer boredom");
  CHECK(restored(kept) == core::Synchronizer::State{});
  CHECK_FALSE(restored(state::v1::Eviction{}).has_value());
}

}  // namespace evictd::state::restored_state_test
