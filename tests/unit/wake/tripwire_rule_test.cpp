#include "wake/tripwire_rule.hpp"

#include <doctest/doctest.h>

#include <random>
#include <string>

namespace evictd::wake::tripwire_rule_test {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t MiB = std::int64_t{1} << 20;

/// A rule with a clock, and what stands by it.
struct Scene {
  TripwireRule rule{TripwireSettings{}};
  core::Instant now{1h};
  bool stands = false;
  bool news = false;
  std::optional<core::Instant> until{};
  std::string why;

  /// What becomes of it at this distance, in MiB.
  std::string look(std::optional<std::int64_t> distance = 100) {
    if (distance) *distance *= MiB;
    auto decision = rule.decide(now);
    if (!decision) decision = rule.by_distance(distance, stands, now);
    why = decision->why;
    until = decision->until;
    news = decision->news;
    using enum TripwireRule::Wish;
    if (decision->wish == Keep) return "keep";
    stands = decision->wish == Stand;
    return stands ? "stand" : "lift";
  }
  bool trip(core::Duration after = 0s) {
    now += after;
    return rule.tripped(now);
  }
  std::string pass(std::int64_t distance, bool releasing = false, bool nobody_goes = false) {
    now += 1ms;
    rule.passed({.read = now, .distance = distance * MiB, .releasing = releasing, .nobody_goes = nobody_goes}, now);
    return look(distance);
  }
  std::string pass_without_victim(std::int64_t distance) { return pass(distance, false, true); }
  /// One trip by file cache.
  std::string trip_for_nothing() {
    CHECK(trip(1ms));
    return pass(200);
  }
};

}  // namespace

TEST_CASE("it stands as soon as there is a threshold, and at some distance from it") {
  Scene scene;
  CHECK(scene.look(std::nullopt) == "lift");
  CHECK(scene.why == "waiting: no hard memory threshold");
  CHECK(scene.look(7) == "lift");
  CHECK(scene.why == "waiting: memory is nearly short");
  CHECK(scene.look(8) == "stand");
  CHECK(scene.look(1) == "stand");  // which it stays, once it stands
  CHECK(scene.look(std::nullopt) == "lift");
}

TEST_CASE("a trip is news once, holds until the kill, and is lifted with it") {
  Scene scene;
  scene.look();
  CHECK(scene.trip());
  CHECK_FALSE(scene.trip(1ms));
  CHECK(scene.pass(-10) == "keep");
  CHECK(scene.pass(-10) == "keep");
  CHECK(scene.pass(-10, true) == "lift");
  CHECK(scene.why == "lifted: an evicted pod's memory is coming back, or evictd only watches");
  CHECK(scene.pass(50, true) == "lift");
  CHECK(scene.pass(50) == "stand");
  CHECK(scene.rule.trips() == 1);
  CHECK(scene.rule.spurious() == 0);
  CHECK(scene.trip(1ms));
}

TEST_CASE("what was read before the trip says nothing about it") {
  Scene scene;
  scene.look();
  const auto before = scene.now;
  CHECK(scene.trip(1ms));
  scene.rule.passed({.read = before, .distance = MiB}, scene.now);
  CHECK(scene.look() == "keep");
  CHECK(scene.rule.spurious() == 0);
  CHECK(scene.pass(-1) == "keep");
  scene.rule.passed({.read = before, .distance = MiB}, scene.now);  // the same again
  CHECK(scene.look(-1) == "keep");
}

TEST_CASE("a trip for nothing is lifted at once, counted, and followed by a rest of 10 s") {
  Scene scene;
  scene.look();
  CHECK(scene.trip_for_nothing() == "lift");
  CHECK(scene.why == "waiting: nothing was short when it fired; not set again for 10s");
  CHECK(scene.until == scene.now + 10s);
  CHECK(scene.rule.spurious() == 1);
  scene.now += 10s - 1ns;
  CHECK(scene.look() == "lift");
  scene.now += 1ns;
  CHECK(scene.look() == "stand");
}

TEST_CASE("each rest is twice as long where the one before helped for less than its own time, up to 5 min") {
  Scene scene;
  scene.look();
  for (const auto* rest : {"10s", "20s", "40s", "1m20s", "2m40s", "5m0s", "5m0s"}) {
    CHECK(scene.trip_for_nothing() == "lift");
    CHECK(scene.why == "waiting: nothing was short when it fired; not set again for " + std::string(rest));
    scene.now = scene.until.value();
    CHECK(scene.look() == "stand");
  }
  scene.now += 5min;
  scene.trip_for_nothing();
  CHECK(scene.until == scene.now + 10s);
}

TEST_CASE("where files stream without end, there is at most one trip for nothing in 10 s") {
  std::mt19937_64 random{1};
  Scene scene;
  scene.look();
  std::optional<core::Instant> last;
  for (int i = 0; i < 100'000; ++i) {
    scene.now += std::chrono::milliseconds(random() % 500);
    if (scene.stands && random() % 4 == 0) scene.trip();
    const auto before = scene.rule.spurious();
    scene.pass(static_cast<std::int64_t>(random() % 300));
    if (scene.rule.spurious() == before) continue;
    REQUIRE_FALSE(scene.stands);
    REQUIRE((!last || scene.now - *last >= 10s));
    last = scene.now;
  }
  CHECK(scene.rule.spurious() > 50);
}

TEST_CASE("where nobody goes, nobody is held for more than a second, and it stands again once memory is there") {
  Scene scene;
  scene.look();
  scene.trip();
  const auto begin = scene.now;
  CHECK(scene.pass(-10) == "keep");
  CHECK(scene.until == begin + 1s);
  scene.now = begin + 1s;
  CHECK(scene.look(-10) == "lift");
  CHECK(scene.why == "lifted: memory is short");
  CHECK(scene.pass(-10) == "lift");
  CHECK(scene.look(4) == "lift");
  CHECK(scene.look(20) == "stand");
  CHECK(scene.rule.spurious() == 0);
}

TEST_CASE("a trip that no pass has seen for a second was for nothing where nothing is short") {
  Scene scene;
  scene.look();
  scene.trip();
  scene.now += 1s;
  CHECK(scene.look() == "lift");
  CHECK(scene.rule.spurious() == 1);
  CHECK(scene.until == scene.now + 10s);
}

TEST_CASE("a shortage that came past it is news until a pass has seen it, and holds as a trip does") {
  Scene scene;
  scene.look();
  CHECK(scene.look(-1) == "keep");
  CHECK(scene.news);
  CHECK(scene.until == scene.now + 1s);
  CHECK_FALSE(scene.trip(1ms));  // a pass is on its way
  CHECK(scene.pass(-1) == "keep");
  CHECK(scene.pass(-1, true) == "lift");
  CHECK(scene.pass(50) == "stand");
  CHECK(scene.rule.trips() == 0);
  CHECK(scene.rule.spurious() == 0);

  Scene lifted;
  CHECK(lifted.look(-1) == "lift");
  CHECK(lifted.news);
  CHECK(lifted.pass(-1) == "lift");
  CHECK_FALSE(lifted.news);
}

TEST_CASE("a shortage that ended by itself was none for nothing, and it rests: it would hold again and again") {
  Scene scene;
  scene.look();
  scene.trip();
  CHECK(scene.pass(-10) == "keep");
  CHECK(scene.pass(10) == "lift");
  CHECK(scene.why == "waiting: memory was short for a moment; not set again for 10s");
  CHECK(scene.rule.spurious() == 0);
  scene.now = scene.until.value();
  CHECK(scene.look() == "stand");
}

TEST_CASE("where a pass has found nobody who may go, nobody is held any longer") {
  Scene scene;
  scene.look();
  scene.trip();
  CHECK(scene.pass_without_victim(-10) == "lift");
  CHECK(scene.why == "waiting: nobody may be evicted; not set again for 10s");
  CHECK(scene.rule.spurious() == 0);
  // Memory goes up and down around the threshold: at most one hold in a rest, and rests become longer.
  for (const auto* rest : {"20s", "40s", "1m20s"}) {
    scene.now = scene.until.value();
    CHECK(scene.pass(50) == "stand");
    CHECK(scene.trip(1ms));
    CHECK(scene.pass_without_victim(-1) == "lift");
    CHECK(scene.why == "waiting: nobody may be evicted; not set again for " + std::string(rest));
  }
  // With somebody who may go it is as ever.
  scene.now = scene.until.value();
  CHECK(scene.pass(50) == "stand");
  scene.trip();
  CHECK(scene.pass(-1) == "keep");
  CHECK(scene.pass(-1, true) == "lift");
  CHECK(scene.pass(50) == "stand");
}

TEST_CASE("one that speaks early, on the way to the threshold, is set anew without a rest") {
  Scene scene;
  CHECK(scene.look(10'240) == "stand");  // a hog takes 10 GiB, and 20 MiB of page tables that no node counts
  scene.trip();
  CHECK(scene.pass(20) == "stand");
  CHECK(scene.rule.spurious() == 0);
  scene.trip();
  CHECK(scene.pass(9) == "stand");
  scene.trip();
  CHECK(scene.pass(4) == "lift");  // too near to stand: the sampler looks every millisecond there
  CHECK(scene.why == "waiting: memory is nearly short");
  CHECK(scene.look(20) == "stand");
  scene.trip();
  CHECK(scene.pass(11) == "lift");  // most of the way is left: file cache
  CHECK(scene.rule.spurious() == 1);
}

}  // namespace evictd::wake::tripwire_rule_test
