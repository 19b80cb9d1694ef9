#include "state/state_writer.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <state.pb.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <string>

#include "state/restored_state.hpp"

namespace evictd::state::state_writer_test {
namespace {

using namespace std::chrono_literals;

/// The evictions of pods whose texts are as long as somebody made them.
struct Evictions {
  evict::EvictionRecord& add(std::size_t annotation = 0, std::size_t message = 200) {
    const auto number = records.size() + 1;
    auto pod = std::make_shared<core::Pod>(core::Pod{
        .name_space = "default", .name = fmt::format("pod-{}", number), .uid = fmt::format("uid-{}", number)});
    pod->annotations = {{"kubernetes.io/config.source", "api"}, {"example.com/all", std::string(annotation, 'x')}};
    auto runtime = std::make_shared<pods::RuntimePod>();
    runtime->pod = pod;
    runtime->sandbox_id = std::string(64, 's');
    runtime->cgroup = "/kubepods/besteffort/pod" + pod->uid;
    runtime->containers = {{.id = std::string(64, 'c'), .name = "main", .state = pods::ContainerState::Running}};
    evict::EvictionRecord record{
        {.pod = pod, .cause = core::Signal::MemoryAvailable}, {.begun = core::Instant{2s}}, number};
    record.turn.wake.time = core::Instant{1s};
    record.turn.wake.reasons.push_back({core::WakeSource::Memcg, "memory.available", core::Instant{1s}});
    record.turn.stages = {{core::Stage::Observed, 20us}, {core::Stage::Decided, 300us}};
    record.runtime = runtime;
    record.message = {std::string(message, 'm'), {{"offending_containers", "main"}, {"starved_resource", "memory"}}};
    return records.emplace_back(std::move(record));
  }

  [[nodiscard]] std::vector<SavedEviction> saved() const {
    std::vector<SavedEviction> result;
    for (const auto& record : records) result.push_back({.record = &record});
    for (const auto& record : over) result.push_back({.record = &record, .until = core::Instant{1h}});
    return result;
  }

  std::deque<evict::EvictionRecord> records;
  std::deque<evict::EvictionRecord> over;
};

/// Some of each kind.
state::v1::AgentState some_state(int pods = 3) {
  state::v1::AgentState state;
  for (int i = 0; i < pods; ++i) {
    auto& back_off = (*state.mutable_synchronizer()->mutable_back_off())[fmt::format("default/controller-{}", i)];
    back_off.set_until_ns(i);
    state.mutable_synchronizer()->add_in_flight()->set_uid(fmt::format("uid-{}", i));
  }
  (*state.mutable_conditions_since_ns())["MemoryPressure"] = 7;
  (*state.mutable_conditions_since_ns())["DiskPressure"] = 8;
  return state;
}

state::v1::AgentState read(const std::string& text) {
  state::v1::AgentState state;
  REQUIRE(state.ParseFromString(text));
  return state;
}

state::v1::AgentState written(StateWriter& writer, const Evictions& evictions, int pods = 3) {
  auto state = some_state(pods);
  return read(writer.write(state, evictions.saved()));
}

}  // namespace

TEST_CASE("110 pods with 256 KiB of annotations each are all kept, with what their reports need") {
  Evictions evictions;
  for (int i = 0; i < 110; ++i) evictions.add(256 << 10);
  StateWriter writer;
  const auto state = written(writer, evictions);
  CHECK_FALSE(writer.has_shed());
  REQUIRE(state.evictions_size() == 110);
  CHECK(state.ByteSizeLong() < 110 * 1024);
  for (int i = 0; i < 110; ++i) {
    const auto record = restored(state.evictions(i));
    REQUIRE(record.has_value());
    const auto& before = evictions.records[static_cast<std::size_t>(i)];
    CHECK(record->pod->uid == before.pod->uid);
    CHECK(record->pod->annotations == decltype(record->pod->annotations){{"kubernetes.io/config.source", "api"}});
    CHECK(record->message == before.message);
    CHECK(record->runtime->containers.front().name == "main");
  }
}

TEST_CASE("texts of any length leave room for each other, and are cut between characters") {
  Evictions evictions;
  auto& record = evictions.add();
  record.message.text = "x";
  for (int i = 0; i < 100'000; ++i) record.message.text += "ä";
  record.message.annotations = {{std::string(100'000, 'k'), std::string(100'000, 'v')}};
  record.turn.wake.reasons.assign(20, {core::WakeSource::Memcg, std::string(100'000, 'd'), core::Instant{1s}});
  auto runtime = std::make_shared<pods::RuntimePod>(*record.runtime);
  runtime->containers.assign(
      200, {.id = std::string(64, 'c'), .name = std::string(10'000, 'n'), .state = pods::ContainerState::Running});
  record.runtime = runtime;
  StateWriter writer;
  const auto state = written(writer, evictions);
  REQUIRE(state.evictions_size() == 1);
  CHECK(state.evictions(0).ByteSizeLong() <= 16 << 10);
  CHECK(state.evictions(0).message().size() > 250);
  CHECK(state.evictions(0).message().ends_with("ä"));
  CHECK(state.evictions(0).sandbox_id() == runtime->sandbox_id);
}

TEST_CASE("an identity is whole or not there: a part of it would be somebody else's") {
  Evictions evictions;
  auto& record = evictions.add();
  auto runtime = std::make_shared<pods::RuntimePod>(*record.runtime);
  runtime->sandbox_id = std::string(10'000, 's');
  runtime->cgroup = std::string(10'000, '/');
  record.runtime = runtime;
  StateWriter writer;
  const auto state = written(writer, evictions);
  CHECK(state.evictions(0).sandbox_id().empty());
  CHECK(state.evictions(0).cgroup().empty());
}

TEST_CASE("where there is too much, the least important goes first, and never all") {
  Evictions evictions;
  for (int i = 0; i < 20; ++i) evictions.add(0, 800).killed = i % 2 == 0;
  evictions.over.push_back(evictions.records.front());
  evictions.over.back().id = 1000;
  const auto of = [&](std::size_t most) {
    StateWriter writer{most};
    auto state = some_state(200);
    const auto text = writer.write(state, evictions.saved());
    CHECK(text.size() <= most);
    CHECK(writer.has_shed() == (most < 1 << 20));
    return read(text);
  };
  const auto all = of(1 << 20);
  CHECK(all.evicted_size() == 1);
  CHECK(all.evictions_size() == 20);
  CHECK(all.evictions(0).message_annotations_size() == 2);
  CHECK(all.synchronizer().back_off_size() == 200);

  struct Shed {
    bool evicted, annotations, back_offs, reasons;
    int evictions;
  };
  const auto shed = [&](const state::v1::AgentState& state) {
    const auto annotated = [](const auto& eviction) { return eviction.message_annotations_size() > 0; };
    const auto reasoned = [](const auto& eviction) { return eviction.reasons_size() > 0; };
    return Shed{.evicted = state.evicted_size() > 0,
                .annotations = std::ranges::any_of(state.evictions(), annotated),
                .back_offs = state.synchronizer().back_off_size() > 0,
                .reasons = std::ranges::any_of(state.evictions(), reasoned),
                .evictions = state.evictions_size()};
  };
  auto before = shed(all);
  for (auto most = all.ByteSizeLong() - 1; most > 6000; most -= 200) {
    CAPTURE(most);
    const auto state = of(most);
    const auto now = shed(state);
    // Nothing comes back as it gets tighter, and each goes only where the one before it has gone.
    CHECK(now.evicted <= before.evicted);
    if (!now.annotations) CHECK_FALSE(now.evicted);
    if (!now.back_offs) CHECK_FALSE(now.annotations);
    if (!now.reasons) CHECK_FALSE(now.back_offs);
    if (now.evictions < 20) CHECK_FALSE(now.reasons);
    CHECK(now.evictions <= before.evictions);
    CHECK(now.evictions > 0);
    // Those that are dead go before those that are not.
    const auto alive =
        std::ranges::count_if(state.evictions(), [](const auto& eviction) { return !eviction.killed(); });
    if (now.evictions >= 10) CHECK(alive == 10);
    CHECK(state.synchronizer().in_flight_size() == 200);
    CHECK(state.conditions_since_ns_size() == 2);
    before = now;
  }
  CHECK(before.evictions < 20);
}

TEST_CASE("the same state is the same text, and each change of an eviction is in the next") {
  Evictions evictions;
  for (int i = 0; i < 5; ++i) evictions.add();
  StateWriter writer;
  const auto text_now = [&] {
    auto state = some_state(50);
    return writer.write(state, evictions.saved());
  };
  auto before = text_now();
  CHECK(text_now() == before);
  {
    StateWriter another;
    auto state = some_state(50);
    CHECK(another.write(state, evictions.saved()) == before);
  }
  const auto changes = [&](auto change) {
    change(evictions.records[2]);
    const auto after = text_now();
    CHECK(after != before);
    CHECK(restored(read(after).evictions(2)).has_value());
    before = after;
  };
  changes([](evict::EvictionRecord& record) { record.killed = true; });
  changes([](evict::EvictionRecord& record) { record.held = 5; });
  changes([](evict::EvictionRecord& record) { record.released = true; });
  changes([](evict::EvictionRecord& record) { record.gone = true; });
  changes([](evict::EvictionRecord& record) { record.given_time = evict::GivenTime::now; });
  changes([](evict::EvictionRecord& record) { record.turn.stages.set(core::Stage::Killed, 5us); });
  changes([](evict::EvictionRecord& record) { record.begun += 1s; });
  changes([](evict::EvictionRecord& record) { record.grace_period = 1s; });
  changes([](evict::EvictionRecord& record) { record.message.text = "another"; });
  changes([](evict::EvictionRecord& record) { record.runtime = std::make_shared<pods::RuntimePod>(); });
  evictions.over.push_back(evictions.records.back());
  evictions.records.pop_back();
  const auto state = read(text_now());
  CHECK(state.evictions_size() == 4);
  REQUIRE(state.evicted_size() == 1);
  CHECK(state.evicted(0).eviction().id() == 5);
  CHECK(state.evicted(0).eviction().containers_size() == 0);
  CHECK(state.evicted(0).until_ns() > 0);
}

}  // namespace evictd::state::state_writer_test
