#include "agent/preemptions.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/admission_scene.hpp"
#include "fixture/captured_log.hpp"
#include "pods/pod_builder.hpp"

namespace evictd::agent::preemptions_test {
namespace {

using namespace std::chrono_literals;
using fixture::pod;

core::PodPtr with_grace_period(core::Pod pod, std::int64_t seconds) {
  pod.termination_grace_period_seconds = seconds;
  return std::make_shared<const core::Pod>(std::move(pod));
}

core::PodPtr victim(const std::string& name) { return with_grace_period(pod(name), 30); }

/// Pods that go, and how often it was told that one is not waited for any more.
struct Scene : admission_scene::Scene {
  /// The runtime lists it from now on.
  void come(const std::string& name) {
    const auto pods = loop.tracker.pods()->size();
    loop.running.pods[name] = runtime_pod(pod(name));
    runtime.put(test::sandbox("s-" + name, name, name), test::sandbox_json("/kubepods/besteffort/pod" + name));
    list_until(pods + 1);
  }
  [[nodiscard]] std::vector<std::string> stopped() const {
    std::vector<std::string> uids;
    for (const auto& eviction : loop.stopper.begun) uids.push_back(eviction.uid);
    return uids;
  }

  int told = 0;
  std::optional<Preemptions> preemptions{std::in_place,
                                         Preemptions::Parts{.reactor = loop.reactor.get_executor(),
                                                            .pods = loop.tracker,
                                                            .evictions = loop.evictions,
                                                            .clock = loop.clock},
                                         [this] { ++told; }};
};

using Uids = std::vector<std::string>;

}  // namespace

TEST_CASE("a preempted pod has its own grace period, and is waited for until nothing of it is left") {
  Scene scene;
  scene.run({"b"});
  scene.preemptions->begin(with_grace_period(pod("b"), 7));
  REQUIRE(scene.stopped() == Uids{"b"});
  CHECK(scene.loop.stopper.begun.front().grace_period == 7s);
  CHECK(scene.preemptions->is_awaited("b"));
  CHECK_FALSE(scene.preemptions->is_awaited("a"));

  scene.loop.stopper.report("b", FakeStopper::killed());
  CHECK(scene.preemptions->any_awaited());
  CHECK(scene.told == 0);
  scene.loop.stopper.report("b", FakeStopper::ended());
  CHECK_FALSE(scene.preemptions->any_awaited());
  CHECK(scene.told == 1);
  scene.loop.clock.advance(1min);
  CHECK(scene.told == 1);
}

TEST_CASE("pods that go at once are waited for each by itself") {
  Scene scene;
  scene.run({"a", "b"});
  scene.preemptions->begin(victim("a"));
  scene.preemptions->begin(victim("b"));
  CHECK(scene.stopped() == Uids{"a", "b"});
  scene.end("b");
  CHECK(scene.told == 1);
  CHECK(scene.preemptions->is_awaited("a"));
  CHECK_FALSE(scene.preemptions->is_awaited("b"));
  scene.end("a");
  CHECK(scene.told == 2);
  CHECK_FALSE(scene.preemptions->any_awaited());
}

TEST_CASE("who has gone before it could be stopped is told within begin()") {
  Scene scene;
  scene.run({"b"});
  scene.loop.running.pods.clear();  // and the list is older
  scene.preemptions->begin(victim("b"));
  CHECK(scene.told == 1);
  CHECK_FALSE(scene.preemptions->any_awaited());
  CHECK(scene.stopped().empty());
}

TEST_CASE("one that comes while evictd only watches ends once it acts") {
  Scene scene;
  scene.run({"b"});
  scene.preemptions->begin(victim("late"));
  scene.loop.evictions.only_watch(true);
  for (const auto* another : {"c", "d", "e"}) {
    scene.loop.clock.advance(4min);
    scene.come(another);
  }
  scene.come("late");
  CHECK(scene.stopped().empty());
  scene.loop.evictions.only_watch(false);
  scene.come("other");  // with the next list
  CHECK(scene.stopped() == Uids{"late"});
}

TEST_CASE("in a dry run every pod has ended at once, also one that is on its way, which may then run") {
  Scene scene;
  scene.run({"b"});
  scene.loop.evictions.only_watch(true);
  scene.preemptions->begin(victim("b"));
  CHECK(scene.told == 1);
  scene.preemptions->begin(victim("late"));
  CHECK(scene.told == 2);
  CHECK_FALSE(scene.preemptions->any_awaited());

  scene.loop.evictions.only_watch(false);
  scene.come("late");
  CHECK(scene.stopped().empty());
}

TEST_CASE("a pod is waited for half as long again as it may take, and 10 s at least; it goes on all the same") {
  const fixture::CapturedLog log;
  Scene scene;
  scene.run({"b"});
  const auto complaints = [&log] {
    return std::ranges::count_if(log.lines(), [](const std::string& line) { return line.contains("has not ended"); });
  };
  core::Duration longest{};
  SUBCASE("30 s") {
    scene.preemptions->begin(with_grace_period(pod("b"), 30));
    longest = 45s;
  }
  SUBCASE("2 s") {
    scene.preemptions->begin(with_grace_period(pod("b"), 2));
    longest = 10s;
  }
  scene.loop.clock.advance(longest - 1s);
  CHECK(scene.preemptions->is_awaited("b"));
  CHECK(scene.told == 0);
  CHECK(complaints() == 0);
  scene.loop.clock.advance(1s);
  CHECK_FALSE(scene.preemptions->is_awaited("b"));
  CHECK(scene.told == 1);
  CHECK(complaints() == 1);

  CHECK(scene.loop.evictions.under_way() == 1);
  scene.end("b");
  CHECK(scene.told == 1);
}

TEST_CASE("a pod that somebody else preempts meanwhile is waited for anew, and stopped and told once") {
  Scene scene;
  scene.run({"b"});
  scene.preemptions->begin(victim("b"));
  scene.loop.clock.advance(30s);
  scene.preemptions->begin(victim("b"));
  CHECK(scene.stopped() == Uids{"b"});
  scene.loop.clock.advance(44s);
  CHECK(scene.preemptions->is_awaited("b"));
  CHECK(scene.told == 0);
  SUBCASE("it ends") { scene.end("b"); }
  SUBCASE("it does not") { scene.loop.clock.advance(1s); }
  CHECK_FALSE(scene.preemptions->is_awaited("b"));
  CHECK(scene.told == 1);
}

TEST_CASE("a pod that is on its way ends when it has come, however late") {
  Scene scene;
  scene.list_pods();
  int told_before = 0;
  SUBCASE("by its uid") {
    scene.preemptions->begin(victim("late"));
    CHECK(scene.preemptions->is_awaited("late"));
  }
  SUBCASE("by its name, where it was admitted without a uid") {
    auto unnamed = pod("late");
    unnamed.name_space = "shop";  // the runtime's
    unnamed.uid = unnamed.key();
    scene.preemptions->begin(with_grace_period(unnamed, 30));
    CHECK(scene.preemptions->is_awaited("shop/late"));
  }
  SUBCASE("when nobody waits for it any more") {
    scene.preemptions->begin(victim("late"));
    scene.loop.clock.advance(5min - 1s);
    told_before = 1;
  }
  CHECK(scene.told == told_before);
  CHECK(scene.stopped().empty());
  scene.come("other");
  CHECK(scene.stopped().empty());
  scene.come("late");
  CHECK(scene.stopped() == Uids{"late"});
  CHECK(scene.told == told_before);
  scene.end("late");
  CHECK_FALSE(scene.preemptions->any_awaited());
  CHECK(scene.told == 1);
}

TEST_CASE("a pod that comes once nothing is kept for it any more comes anew") {
  Scene scene;
  scene.list_pods();
  scene.preemptions->begin(victim("late"));
  scene.loop.clock.advance(5min);
  scene.come("late");
  CHECK(scene.stopped().empty());
}

TEST_CASE("a pod on its way that is forgotten may run; one that ends already is waited for") {
  Scene scene;
  scene.run({"b"});
  scene.preemptions->begin(victim("late"));
  scene.preemptions->begin(victim("b"));
  scene.preemptions->forget("late");
  CHECK(scene.told == 1);
  CHECK_FALSE(scene.preemptions->is_awaited("late"));
  scene.preemptions->forget("b");
  scene.preemptions->forget("nobody");
  CHECK(scene.told == 1);
  CHECK(scene.preemptions->is_awaited("b"));

  scene.come("late");
  CHECK(scene.stopped() == Uids{"b"});
}

TEST_CASE("whoever waited is told nothing once the preemptions are gone") {
  Scene scene;
  SUBCASE("and the pod ends") {
    scene.run({"b"});
    scene.preemptions->begin(victim("b"));
    CHECK(scene.stopped() == Uids{"b"});
    scene.preemptions.reset();
    scene.end("b");
  }
  SUBCASE("and its time is over") {
    scene.preemptions->begin(victim("late"));
    scene.loop.clock.settle();
    scene.preemptions.reset();
    scene.loop.clock.advance(1min);
  }
  CHECK(scene.told == 0);
}

}  // namespace evictd::agent::preemptions_test
