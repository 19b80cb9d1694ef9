#include "agent/eviction_records.hpp"

#include <doctest/doctest.h>
#include <state.pb.h>

#include <memory>

#include "agent/fakes.hpp"
#include "fixture/pods.hpp"
#include "state/state_writer.hpp"

namespace evictd::agent::eviction_records_test {
namespace {

using namespace std::chrono_literals;
using enum core::Signal;
using fixture::pod;
using fixture::operator""_MiB;
using Uids = std::vector<std::string>;

const core::Instant now{1h};

evict::EvictionRecord record(const char* name, std::uint64_t id = 7, core::Instant begun = now) {
  return {{.pod = std::make_shared<const core::Pod>(pod(name)), .cause = MemoryAvailable},
          {.begun = begun, .killed = false, .held = 500_MiB},
          id,
          {},
          runtime_pod(pod(name))};
}

/// What an evictd leaves whose records these are.
state::v1::AgentState saved(const EvictionRecords& records) {
  state::v1::AgentState kept;
  for (const auto& each : records.to_save()) {
    if (!each.until) {
      *kept.add_evictions() = state::keep(*each.record);
      continue;
    }
    auto& evicted = *kept.add_evicted();
    *evicted.mutable_eviction() = state::keep(*each.record);
    evicted.set_until_ns(state::keep(*each.until));
  }
  return kept;
}

}  // namespace

TEST_CASE("a quicker eviction of the same pod takes the place of the one under way") {
  EvictionRecords records;
  records.begin(record("a", 7));
  records.begin(record("a", 8));
  CHECK(records.find("a", 7) == nullptr);
  REQUIRE(records.find("a", 8) != nullptr);
  CHECK(records.under_way().size() == 1);
}

TEST_CASE("a pod has ended once it was killed and its cleanup is over, until it runs again or is to go again") {
  EvictionRecords records;
  records.begin(record("a"));
  records.find("a", 7)->killed = true;
  CHECK_FALSE(records.has_ended("a"));
  static_cast<void>(records.end("a", now));
  CHECK(records.has_ended("a"));
  CHECK_FALSE(records.has_ended("b"));
  records.returned("a");
  CHECK_FALSE(records.has_ended("a"));

  // Nothing but its cgroup is left.
  records.begin(record("c"));
  records.find("c", 7)->killed = true;
  records.find("c", 7)->gone = true;
  CHECK(records.has_ended("c"));

  // Waited for too long: nobody knows that it is dead.
  records.begin(record("b"));
  static_cast<void>(records.end("b", now));
  CHECK_FALSE(records.has_ended("b"));
}

TEST_CASE("a pod that went is known and saved for five minutes") {
  EvictionRecords records;
  records.begin(record("a"));
  CHECK(records.contains("a"));
  CHECK(records.end("a", now).id == 7);
  CHECK_FALSE(records.contains("a"));
  REQUIRE(records.to_save().size() == 1);
  CHECK(records.to_save().front().until == now + 5min);
  CHECK(records.ended_before(now + 5min, now + 5min).empty());
  CHECK(records.to_save().empty());
}

TEST_CASE("a pod may have returned when a list that was asked for after its end has it, and returns once") {
  EvictionRecords records;
  records.begin(record("a"));
  const auto over = records.end("a", now);
  CHECK(records.ended_before(now + 2s, now + 2s).empty());  // its disk space is still awaited
  records.settled(over, now + 1s);
  CHECK(records.ended_before(now + 1s, now + 2s).empty());
  CHECK(records.ended_before(now + 2s, now + 2s) == Uids{"a"});
  records.returned("a");
  CHECK(records.ended_before(now + 3s, now + 3s).empty());
}

TEST_CASE("of a pod that runs again the next evictd tells nobody that it went, unless it goes again") {
  EvictionRecords records;
  records.begin(record("a", 7));
  static_cast<void>(records.end("a", now));
  records.returned("a");
  CHECK(records.knows(pods::NamedUid{"a"}));
  CHECK(records.to_save().empty());
  records.begin(record("a", 8));
  static_cast<void>(records.end("a", now + 1s));
  REQUIRE(records.to_save().size() == 1);
  CHECK(records.to_save().front().record->id == 8);
}

TEST_CASE("what settles while a pod's cgroup is awaited has settled when that is over") {
  EvictionRecords records;
  records.begin(record("a"));
  records.settled(record("a"), now);
  CHECK(records.ended_before(now + 1s, now).empty());
  static_cast<void>(records.end("a", now + 10s));
  CHECK(records.ended_before(now + 1s, now + 10s) == std::vector<std::string>{"a"});
}

TEST_CASE("what settles late says nothing of a later eviction of the same pod") {
  EvictionRecords records;
  records.begin(record("a", 7));
  const auto first = records.end("a", now);
  records.begin(record("a", 8));
  (void)records.end("a", now + 1s);
  records.settled(first, now + 2s);
  CHECK(records.ended_before(now + 3s, now + 3s).empty());
}

TEST_CASE("what is under way outlives a restart") {
  EvictionRecords first;
  first.begin(record("a"));
  EvictionRecords second;
  std::vector<core::InFlight::Entry> in_flight{{.uid = "a", .cause = MemoryAvailable}};
  CHECK(second.restore(saved(first), in_flight, 30s, now + 29s).empty());
  REQUIRE(second.find("a", 7) != nullptr);
  CHECK(second.find("a", 7)->held == 500_MiB);
  CHECK(in_flight.front().state == core::InFlight::State::releasing);
}

TEST_CASE("what an earlier evictd had begun too long ago is left alone") {
  EvictionRecords first;
  first.begin(record("a"));
  EvictionRecords second;
  std::vector<core::InFlight::Entry> in_flight{{.uid = "a", .cause = MemoryAvailable}};
  const auto left = second.restore(saved(first), in_flight, 30s, now + 31s);
  REQUIRE(left.size() == 1);
  CHECK(left.front().pod->uid == "a");
  CHECK(in_flight.empty());
  CHECK(second.under_way().empty());
}

TEST_CASE("a pod that was killed is not left alone while an evictd that lives would still wait for its end") {
  EvictionRecords first;
  auto killed = record("a");
  killed.killed = true;
  first.begin(std::move(killed));
  std::vector<core::InFlight::Entry> in_flight{{.uid = "a", .cause = MemoryAvailable}};
  EvictionRecords second;
  CHECK(second.restore(saved(first), in_flight, 30s, now + 60s).empty());
  CHECK(second.under_way().contains("a"));
  CHECK(in_flight.front().state == core::InFlight::State::releasing);
  EvictionRecords third;
  CHECK(third.restore(saved(first), in_flight, 30s, now + 2min).size() == 1);
}

TEST_CASE("an eviction of which only the cgroup and the volumes are awaited goes on after any absence") {
  EvictionRecords first;
  auto gone = record("a");
  gone.killed = gone.gone = true;
  first.begin(std::move(gone));
  std::vector<core::InFlight::Entry> in_flight{{.uid = "a", .cause = MemoryAvailable}};
  EvictionRecords second;
  CHECK(second.restore(saved(first), in_flight, 30s, now + 1h).empty());
  REQUIRE(second.find("a", 7) != nullptr);
  CHECK(second.find("a", 7)->gone);
}

TEST_CASE("a pod that was held when evictd was killed is not left alone before the longest hold is over") {
  EvictionRecords first;
  auto held = record("a");
  held.given_time = evict::GivenTime::now;
  first.begin(std::move(held));
  std::vector<core::InFlight::Entry> in_flight{{.uid = "a", .cause = MemoryAvailable}};
  EvictionRecords second;
  CHECK(second.restore(saved(first), in_flight, 30s, now + 5min).empty());
  CHECK(second.under_way().contains("a"));
  EvictionRecords third;
  CHECK(third.restore(saved(first), in_flight, 30s, now + 6min).size() == 1);
}

TEST_CASE("a pod of an earlier evictd's whose cleanup ended unnoticed holds nothing back") {
  EvictionRecords first;
  first.begin(record("a"));
  static_cast<void>(first.end("a", now));
  EvictionRecords second;
  std::vector<core::InFlight::Entry> in_flight{{.uid = "a", .cause = MemoryAvailable}};
  CHECK(second.restore(saved(first), in_flight, 30s, now).empty());
  REQUIRE(in_flight.size() == 1);
  CHECK(in_flight.front().state == core::InFlight::State::released);
}

TEST_CASE("a pod that an earlier evictd had chosen and not begun to evict may be chosen as before") {
  EvictionRecords first;
  first.begin(record("a"));
  EvictionRecords second;
  std::vector<core::InFlight::Entry> in_flight{{.uid = "a", .cause = core::LocalStorageLimit::Pod},
                                               {.uid = "b", .cause = core::LocalStorageLimit::Pod}};
  CHECK(second.restore(saved(first), in_flight, 30s, now).empty());
  REQUIRE(in_flight.size() == 1);
  CHECK(in_flight.front().uid == "a");
}

}  // namespace evictd::agent::eviction_records_test
