#include "evictctl/answers.hpp"

#include <doctest/doctest.h>

#include <sstream>

namespace evictd::ctl::event_table_test {
namespace {

using namespace std::chrono_literals;

v1::Event event(std::uint64_t sequence, TimePoint time, const std::string& message) {
  v1::Event result;
  result.set_sequence(sequence);
  result.set_kind(v1::Event::EVICTION_INTENDED);
  result.mutable_time()->set_seconds(std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count());
  result.set_message(message);
  return result;
}

TEST_CASE("events are rows under one heading, within the width of the terminal") {
  std::ostringstream out;
  const auto now = TimePoint(1'000'000'000s);
  EventTable table(out, {.width = 80}, now);
  CHECK(out.str().empty());
  table.print(event(1, now, "evicting default/bloat: the node was low on memory and somebody had to go"));
  table.print(event(2, now, "short"));

  std::istringstream lines(out.str());
  std::vector<std::string> all;
  for (std::string line; std::getline(lines, line);) {
    CHECK(columns(line) <= 80);
    all.push_back(line);
  }
  const auto time = time_text(now);
  CHECK(all == std::vector<std::string>{
                   "   SEQ  TIME          EVENT               WHAT",
                   "     1  " + time + "  EVICTION_INTENDED   evicting default/bloat: the node was",
                   std::string(42, ' ') + "low on memory and somebody had to go",
                   "     2  " + time + "  EVICTION_INTENDED   short",
               });
}

TEST_CASE("the day is named at the beginning unless it is today, and where it changes") {
  std::ostringstream out;
  const auto now = TimePoint(1'000'000'000s);
  EventTable table(out, {.width = 80}, now);
  table.print(event(1, now - 48h, "a"));
  table.print(event(2, now - 48h, "b"));
  table.print(event(3, now, "c"));
  const auto text = out.str();
  CHECK(text.find("-- " + day_text(now - 48h) + " --\n     1") != std::string::npos);
  CHECK(text.find("a\n     2") != std::string::npos);
  CHECK(text.find("b\n-- " + day_text(now) + " --\n     3") != std::string::npos);
}

TEST_CASE("the text says how long after the wake-up the last stage was reached") {
  auto killed = event(1, {}, "default/bloat: stopped app");
  CHECK(event_text(killed) == "default/bloat: stopped app");
  (*killed.mutable_stages())["observed"] = 85;
  (*killed.mutable_stages())["killed"] = 5120;
  CHECK(event_text(killed) == "default/bloat: stopped app [+5.1 ms]");
  killed.mutable_wake()->set_source("memcg");
  killed.set_message("with a blank at its end ");
  CHECK(event_text(killed) == "with a blank at its end [memcg +5.1 ms]");
}

TEST_CASE("a kind that is newer than this client is shown by its number") {
  std::ostringstream out;
  auto unknown = event(1, {}, "what is this");
  unknown.set_kind(static_cast<v1::Event::Kind>(99));
  EventTable(out, {.width = 80}, {}).print(unknown);
  CHECK(out.str().find("  99  ") != std::string::npos);
  CHECK(out.str().find("what is this") != std::string::npos);
}

TEST_CASE("an audited call says who did what, and what it changed") {
  v1::Event audited;
  audited.set_kind(v1::Event::AUDIT);
  auto& audit = *audited.mutable_audit();
  audit.set_caller("uid 0 (root), pid 4711, admin.sock");
  audit.set_call("UpdateThresholds");
  audit.set_outcome("done");
  CHECK(event_text(audited) == "uid 0 (root), pid 4711, admin.sock: UpdateThresholds: done");
  audit.add_before("memory.available: 100Mi");
  audit.add_after("memory.available: 500Mi");
  audit.add_before("pid.available: 10%");
  audit.add_after("pid.available: 10%");
  audited.set_message("root changed the thresholds");
  CHECK(event_text(audited) == "root changed the thresholds; memory.available: 100Mi -> 500Mi");
  audit.set_before(0, "none");
  CHECK(event_text(audited) == "root changed the thresholds; none -> memory.available: 500Mi");
  audited.set_message("root changed: memory.available: 500Mi");
  CHECK(event_text(audited) == "root changed: memory.available: 500Mi");
}

TEST_CASE("snapshots and heartbeats are rows like all others") {
  std::ostringstream out;
  EventTable table(out, {.width = 80}, {});
  auto snapshot = event(17, {}, "no pressure; 12 pods, 0 evictions under way");
  snapshot.set_kind(v1::Event::SNAPSHOT);
  table.print(snapshot);
  auto heartbeat = event(17, {}, "nothing up to event 17");
  heartbeat.set_kind(v1::Event::HEARTBEAT);
  table.print(heartbeat);
  const auto time = time_text({});
  CHECK(out.str() == "   SEQ  TIME          EVENT               WHAT\n    17  " + time +
                         "  SNAPSHOT            no pressure; 12 pods, 0 evictions\n" + std::string(42, ' ') +
                         "under way\n    17  " + time + "  HEARTBEAT           nothing up to event 17\n");
}

}  // namespace
}  // namespace evictd::ctl::event_table_test
