#include <doctest/doctest.h>
#include <fmt/format.h>

#include <boost/json.hpp>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include "benchmarks/soak/diary.hpp"
#include "benchmarks/soak/evictions.hpp"
#include "benchmarks/soak/findings.hpp"
#include "benchmarks/soak/samples.hpp"
#include "core/duration.hpp"
#include "testbed/process.hpp"
#include "testbed/programs.hpp"
#include "testbed/wait.hpp"
#include "things.hpp"

namespace integration::soak_test {

using namespace std::chrono_literals;
using bench::soak::Diary;
using bench::soak::Ledger;
using bench::soak::Sample;
using evictd::v1::Event;

namespace {

std::string setting(const char* variable, const char* usual) {
  const char* given = std::getenv(variable);
  return given != nullptr ? given : usual;
}

Event event(std::uint64_t number, Event::Kind kind = Event::ADMISSION_REJECTED, const std::string& message = "") {
  Event result;
  result.set_sequence(number);
  result.set_kind(kind);
  result.set_message(message);
  return result;
}

Event gap(std::uint64_t from, std::uint64_t to) {
  auto result = event(to, Event::GAP);
  result.mutable_gap()->set_from(from);
  result.mutable_gap()->set_to(to);
  return result;
}

std::vector<Sample> growing(double mib_an_hour) {
  std::vector<Sample> samples;
  for (int minute = 0; minute <= 60; ++minute)
    samples.push_back({.minutes = static_cast<double>(minute), .resident_mib = 20 + mib_an_hour * minute / 60});
  return samples;
}

}  // namespace

TEST_SUITE_BEGIN("soak");

TEST_CASE("a soak: every crossing is answered, nobody else goes, no event is lost, and evictd stays as it is") {
  const auto duration = setting("EVICTD_SOAK_DURATION", "30s");
  const auto time = evictd::core::parse_duration(duration);
  REQUIRE(time);
  testbed::Process bench({testbed::bench_program(), "soak", "--duration", duration, "--seed",
                          setting("EVICTD_SOAK_SEED", "20261122"), "-o", "json"});
  const auto code = bench.wait(std::chrono::duration_cast<std::chrono::milliseconds>(*time) + 10min);
  CAPTURE(bench.errors());
  REQUIRE(code);
  const auto figures = boost::json::parse(bench.output());
  CAPTURE(bench.output());
  const auto number = [&](const char* path) { return figures.at_pointer(path).to_number<double>(); };
  CHECK(*code == 0);
  CHECK(number("/violations") == 0);
  CHECK(number("/minutes") * 60 >= std::chrono::duration<double>(*time).count());
  CHECK(number("/crossings/answered") == number("/crossings/hadToBeAnswered"));
  CHECK(number("/evictions/wrongVictims") == 0);
  CHECK(number("/settledAfter/descriptors") <= number("/settledBefore/descriptors"));
  // It did happen.
  CHECK(number("/crossings/answered") >= 2);
  CHECK(number("/crossings/seenFromOutside") > 0);
  CHECK(number("/containerd/killed") > 0);
  CHECK(number("/pods/started") > 30);
  CHECK(number("/events/last") > 100);
  CHECK(number("/events/visits") > 100);
  CHECK(number("/events/told") > number("/events/last"));
}

TEST_CASE("an interrupted soak says what it found so far, and leaves nothing behind") {
  testbed::Process bench({testbed::bench_program(), "soak", "--pods", "5", "--subscribers", "10", "-o", "json"});
  testbed::wait_until("the soak has begun", 3min, [&] { return bench.errors().find("1 min: ") != std::string::npos; });
  const auto worker = child_of(bench.pid());
  REQUIRE(worker);
  bench.signal(SIGINT);
  const auto code = bench.wait(4min);
  CAPTURE(bench.errors());
  CHECK(code == 0);
  const auto figures = boost::json::parse(bench.output());
  CHECK(figures.at("interrupted").as_bool());
  CHECK(figures.at("minutes").to_number<double>() >= 1);
  CHECK(figures.at_pointer("/evictions/all").to_number<int>() >= 2);
  CHECK(things_of(*worker).empty());
}

TEST_CASE("a soak that is interrupted twice ends at once, and leaves nothing behind") {
  testbed::Process bench({testbed::bench_program(), "soak", "--pods", "5", "--subscribers", "10"});
  std::optional<pid_t> worker;
  testbed::wait_until("the bench has made its node", 1min, [&] {
    worker = child_of(bench.pid());
    return worker && things_of(*worker).size() > 1;
  });
  bench.signal(SIGINT);
  std::this_thread::sleep_for(100ms);  // two at once may become one
  bench.signal(SIGINT);
  CHECK(bench.wait(1min) == 128 + SIGINT);
  CHECK(things_of(*worker).empty());
}

TEST_CASE("a diary takes each number once, and a gap for those that are lost") {
  Ledger ledger;
  Diary diary{ledger};
  diary.begin(4);
  CHECK(diary.read(event(5)).empty());
  CHECK(diary.read(gap(6, 8)).empty());
  CHECK(diary.read(event(9)).empty());
  CHECK(diary.read(event(9, Event::HEARTBEAT)).empty());
  CHECK(diary.last() == 9);
  CHECK(diary.events() == 2);
  CHECK(diary.gaps() == 1);
}

TEST_CASE("a diary finds holes, repetitions, and numbers that stand for two things") {
  Ledger ledger;
  Diary diary{ledger};
  diary.begin(std::nullopt);
  CHECK(diary.read(event(7, Event::SNAPSHOT)).empty());
  CHECK(diary.read(event(9)) == "after 7 comes 9");
  CHECK(diary.read(event(9)) == "after 9 comes 9");
  CHECK(diary.read(gap(11, 12)) == "after 9 comes 11");
  CHECK(diary.read(event(11, Event::HEARTBEAT)) == "a HEARTBEAT of 11 after 12");
  Diary another{ledger};
  another.begin(8);
  CHECK(another.read(event(9, Event::ADMISSION_REJECTED, "otherwise")) == "event 9 is not what another was told");
}

TEST_CASE("an eviction is whole when each of its steps was told once and nothing is left") {
  bench::soak::Eviction eviction;
  eviction.pod = "default/hog-1";
  eviction.intended = eviction.killed = eviction.released = eviction.cleaned = 1;
  CHECK(flaw(eviction).empty());
  eviction.timed_out = true;
  CHECK_FALSE(flaw(eviction).empty());
  eviction.timed_out = false;
  eviction.killed = 2;
  CHECK_FALSE(flaw(eviction).empty());
  CHECK(bench::soak::may_go("default/hog-1"));
  CHECK_FALSE(bench::soak::may_go("default/near-1"));
  CHECK_FALSE(bench::soak::may_go("default/pod-1"));
}

TEST_CASE("growth is told from the first and the last quarter after the warm-up") {
  const auto trend = bench::soak::trend(growing(12), &Sample::resident_mib, 5);
  REQUIRE(trend);
  CHECK(trend->first == doctest::Approx(22.3));
  CHECK(trend->last == doctest::Approx(30.7));
  CHECK(trend->per_hour == doctest::Approx(12));

  const auto findings_of = [](double mib_an_hour) {
    bench::soak::Findings findings;
    bench::soak::judge_growth(growing(mib_an_hour), 5, findings);
    return findings.count();
  };
  CHECK(findings_of(0) == 0);
  CHECK(findings_of(4) == 0);
  CHECK(findings_of(12) == 1);
}

TEST_SUITE_END();

}  // namespace integration::soak_test
