#include "agent/evictions.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <state.pb.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>

#include "agent/fake_clock.hpp"
#include "agent/fakes.hpp"
#include "async/spawn.hpp"
#include "cri/run.hpp"
#include "host/systemd.hpp"
#include "state/state_writer.hpp"

namespace evictd::agent::evictions_test {
namespace {

using namespace std::chrono_literals;
using enum core::Signal;
using fixture::observed;
using fixture::pod;
using fixture::threshold;
using fixture::operator""_GiB;
using fixture::operator""_MiB;

/// A kubelet that runs, or does not.
class FakeKubelet final : public node::KubeletLookout {
 public:
  boost::asio::awaitable<std::optional<bool>> kubelet_runs(core::Instant) override { co_return runs; }
  bool runs = true;
};

/// The pods a and b, and evictions of them whose every neighbour is the test's.
struct Scene {
  explicit Scene(Evictions::Options options = {}, bool explains = false) : options{options}, explains{explains} {
    for (const auto* name : {"a", "b"}) pods.pods[name] = runtime_pod(pod(name));
    usage.working_sets = {{"a", 500_MiB}, {"b", 100_MiB}};
  }

  static core::Eviction evict(const char* name, core::Signal signal = MemoryAvailable, core::Duration grace = {}) {
    return {.pod = std::make_shared<const core::Pod>(pod(name)),
            .cause = signal,
            .grace_period = grace,
            .message = {"short", {}},
            .acted = core::Acted{threshold(signal, "1Gi"), {.available = 0, .capacity = 8_GiB}},
            .expected_release = 500_MiB};
  }
  /// For a limit of its own, while so much lies on a disk of which so much was available.
  static core::Eviction evict_for_limit(const char* name, std::int64_t amount, std::int64_t available) {
    return {.pod = std::make_shared<const core::Pod>(pod(name)),
            .cause = core::LocalStorageLimit::EmptyDir,
            .message = {"too much", {}},
            .disk_release = core::DiskRelease{NodefsAvailable, amount, available}};
  }
  /// For memory, with an emptyDir of that medium.
  static core::Eviction evict_with_volume(const char* name, std::string medium) {
    auto eviction = evict(name);
    auto victim = pod(name);
    victim.volumes = {{.name = "cache", .kind = core::Volume::Kind::EmptyDir, .medium = std::move(medium)}};
    eviction.pod = std::make_shared<const core::Pod>(std::move(victim));
    return eviction;
  }
  [[nodiscard]] bool told_that_a_went() const { return std::ranges::find(steps, "tell that a went") != steps.end(); }
  void begin(const core::Eviction& action) {
    core::Turn turn{wake()};
    evictions.begin(action, turn);
  }
  void displace(const char* name, core::Duration grace = {}, core::Displacement why = core::Displacement::Preemption) {
    evictions.displace(std::make_shared<const core::Pod>(pod(name)), {why, "Preempted"}, grace,
                       [this, name](bool gone) { told.push_back(std::string(name) + (gone ? " gone" : " stays")); });
  }
  [[nodiscard]] wake::Wake wake() const {
    return {.time = clock.now(), .reasons = {{core::WakeSource::Other, "", clock.now()}}};
  }
  Steps take_steps() { return std::exchange(steps, {}); }

  Evictions::Options options;
  bool explains;
  Steps steps{};
  Steps told{};
  boost::asio::io_context reactor{1};
  FakeClock clock{reactor};
  FakeStopper stopper{steps};
  FakePods pods;
  FakeUsage usage{steps, reactor};
  FakeObserver observer{steps, reactor};
  FakeLog log{steps};
  FakeDecisions decisions{steps};
  FakeSaver saver{steps};
  host::ServiceManager service{reactor.get_executor()};
  EvictionRecords records;
  ConditionTimes conditions;
  NodeReports reports{{.observer = observer, .service = service, .state = saver, .conditions = conditions}};
  wake::Wakes wakes{reactor.get_executor()};
  BlackBox black_box{reactor.get_executor(), nullptr, nullptr};
  core::Synchronizer policy{{}};
  FakeKubelet kubelet;
  Steps sent{};  // to the API server, once it is asked for
  kube::Reporter cluster{reactor.get_executor(),
                         {.node = "node-1"},
                         [this](kube::Request request) -> boost::asio::awaitable<Result<kube::Response>> {
                           sent.push_back(std::move(request.method));
                           kube::Response response{.status = 200, .body = "{}"};
                           co_return response;
                         },
                         [](os::LogLevel, const std::string&) {}};
  Evictions evictions{reactor.get_executor(),
                      options,
                      {.records = records,
                       .stopper = stopper,
                       .pods = pods,
                       .usage = usage,
                       .observer = observer,
                       .log = log,
                       .decisions = decisions,
                       .reports = reports,
                       .state = saver,
                       .wakes = wakes,
                       .clock = clock,
                       .cluster = &cluster,
                       .black_box = explains ? &black_box : nullptr,
                       .policy = &policy,
                       .kubelet = &kubelet}};
};

/// The pod counts, with nothing.
bool holds_no_memory(const std::vector<core::Releasing>& releasing) {
  return releasing.size() == 1 && releasing.front().bytes == 0 && releasing.front().processes == 0;
}

}  // namespace

TEST_CASE("the intent is recorded and saved before the pod is stopped, and each step after it") {
  Scene scene;
  scene.begin(Scene::evict("a"));
  CHECK(scene.take_steps() == Steps{"intend a", "save", "stop a"});
  scene.stopper.report("a", FakeStopper::killed());
  CHECK(scene.take_steps() == Steps{"killed a", "save"});
  scene.stopper.report("a", evict::MemoryReleased{.bytes = 500_MiB, .time = {}});
  CHECK(scene.take_steps() == Steps{"released a", "save"});
  scene.stopper.report("a", FakeStopper::ended());
  CHECK(scene.take_steps() == Steps{"cleaned a", "save"});
  scene.clock.settle();
  CHECK(scene.take_steps() == Steps{"tell that a went", "save"});
  CHECK(scene.pods.changes == 1);
}

TEST_CASE(
    "a kill for memory is explained in a later turn, once, also where it is over by then; one for a disk is not") {
  Scene scene{{}, true};
  scene.begin(Scene::evict("a"));
  scene.stopper.report("a", FakeStopper::killed());
  CHECK(scene.take_steps() == Steps{"intend a", "save", "stop a", "killed a", "save"});
  scene.clock.settle();
  CHECK(scene.take_steps() == Steps{"explained a"});
  scene.clock.settle();
  CHECK(scene.take_steps().empty());

  scene.begin(Scene::evict("b", NodefsAvailable));
  scene.stopper.report("b", FakeStopper::killed());
  scene.clock.settle();
  CHECK(scene.take_steps() == Steps{"intend b", "save", "stop b", "killed b", "save"});

  Scene quick{{}, true};
  quick.begin(Scene::evict("a"));
  quick.stopper.report("a", FakeStopper::killed());
  quick.stopper.report("a", FakeStopper::ended());
  quick.clock.settle();
  const auto steps = quick.take_steps();
  CHECK(std::ranges::count(steps, "cleaned a") == 1);
  CHECK(std::ranges::count(steps, "explained a") == 1);
  CHECK(std::ranges::find(steps, "cleaned a") < std::ranges::find(steps, "explained a"));
}

TEST_CASE("only a pod that goes at once for want of memory may be held, and why it goes is said") {
  Scene scene;
  scene.begin(Scene::evict("a"));
  scene.begin(Scene::evict("b", NodefsAvailable));
  REQUIRE(scene.stopper.begun.size() == 2);
  const auto& shortage = scene.stopper.begun.front().shortage;
  REQUIRE(shortage.has_value());
  CHECK(shortage->signal == MemoryAvailable);
  CHECK(shortage->required == 1_GiB);
  CHECK(shortage->intent == 1);
  CHECK_FALSE(shortage->message.empty());
  CHECK_FALSE(scene.stopper.begun.back().shortage.has_value());

  Scene other;
  other.begin(Scene::evict("a", MemoryAvailable, 5s));
  other.displace("b");
  REQUIRE(other.stopper.begun.size() == 2);
  for (const auto& begun : other.stopper.begun) CHECK_FALSE(begun.shortage.has_value());
}

TEST_CASE("that a pod is held is saved, and a restart that finds it so goes on with the kill") {
  Scene scene;
  scene.begin(Scene::evict("a"));
  scene.stopper.report("a", evict::Braked{});
  CHECK(scene.records.find("a", 1)->given_time == evict::GivenTime::now);
  CHECK(scene.take_steps() == Steps{"intend a", "save", "stop a", "tell that a is held", "braked a", "save"});
  scene.evictions.go_on();
  REQUIRE(scene.stopper.begun.size() == 2);
  CHECK(scene.stopper.begun.back().reached->given_time == evict::GivenTime::now);
  CHECK(scene.stopper.begun.back().reached->resumed);
  CHECK_FALSE(scene.stopper.begun.back().shortage.has_value());
  scene.stopper.report("a", evict::Braked{.phase = evict::Braked::Phase::killed});
  CHECK(scene.records.find("a", 1)->given_time == evict::GivenTime::over);
  CHECK(std::ranges::count(scene.take_steps(), "tell that a is held no more") == 1);
}

TEST_CASE("a pod that is held begins a pass, by which what holds all pods is lifted") {
  Scene scene;
  scene.begin(Scene::evict("a"));
  static_cast<void>(test::run(scene.reactor, scene.wakes.next()));  // for the eviction
  scene.stopper.report("a", evict::Braked{});
  const auto wake = test::run(scene.reactor, scene.wakes.next());
  REQUIRE(wake.reasons.size() == 1);
  CHECK(wake.reasons.front().detail == "an evicted pod is held");
}

TEST_CASE("a pod that is frozen while others are asked is held until it goes, whatever they answer") {
  Scene scene;
  scene.begin(Scene::evict("a"));
  scene.stopper.report("a", evict::Braked{.frozen = true});
  CHECK(scene.evictions.lifts_fence({}));
  scene.stopper.report("a", evict::HooksAsked{});
  CHECK(scene.records.find("a", 1)->given_time == evict::GivenTime::now);
  scene.stopper.report("a", evict::Braked{.phase = evict::Braked::Phase::killed, .frozen = true});
  CHECK(scene.records.find("a", 1)->given_time == evict::GivenTime::over);
}

TEST_CASE("a pod that is held does not go at once: who wants that hurries it") {
  Scene scene;
  scene.begin(Scene::evict("a"));
  scene.stopper.report("a", evict::Braked{});
  scene.displace("a", 30s);
  CHECK(scene.stopper.begun.size() == 1);
  scene.displace("a");
  CHECK(scene.stopper.begun.size() == 2);
}

TEST_CASE("how it ended that a pod was held is told, once, where another eviction of it took over as well") {
  Scene scene;
  scene.begin(Scene::evict("a"));
  scene.stopper.report("a", evict::Braked{});
  scene.displace("a");
  scene.take_steps();
  const auto report = scene.stopper.begun.front().report;
  report(FakeStopper::killed());
  CHECK(scene.take_steps().empty());
  report(evict::HooksAsked{});
  report(evict::Braked{.phase = evict::Braked::Phase::killed});
  CHECK(scene.take_steps() == Steps{"asked a", "braked a"});
  report(evict::Braked{.phase = evict::Braked::Phase::killed});
  CHECK(scene.take_steps().empty());
  CHECK(scene.records.find("a", 2)->given_time == evict::GivenTime::none);
}

TEST_CASE("what waits for a pod's end does not wait for its cgroup") {
  Scene scene;
  scene.begin(Scene::evict("a"));
  scene.displace("a");
  scene.stopper.report("a", FakeStopper::killed());
  CHECK(scene.told.empty());
  scene.take_steps();
  scene.stopper.report("a", evict::PodGone{.time = {}});
  CHECK(scene.take_steps() == Steps{"gone a", "save"});
  CHECK(scene.told == Steps{"a gone"});
  CHECK(scene.evictions.has_ended("a"));
  CHECK(scene.evictions.under_way() == 1);
  scene.clock.settle();
  CHECK(scene.take_steps() == Steps{"tell that a went", "save"});

  // A kubelet that does not remove it takes nothing of that back.
  scene.stopper.report("a", FakeStopper::ended(true));
  CHECK(scene.take_steps() == Steps{"cleaned a", "save"});
  scene.clock.settle();
  CHECK(scene.take_steps().empty());
  CHECK(scene.evictions.has_ended("a"));
  CHECK(scene.evictions.under_way() == 0);
  CHECK(scene.told == Steps{"a gone"});
}

TEST_CASE("what is saved before the kill holds the eviction, and what it held") {
  Scene scene;
  std::int64_t held = 0;
  scene.saver.on_save = [&] {
    for (const auto& saved : scene.records.to_save()) held = saved.record->held;
  };
  scene.begin(Scene::evict("a"));
  CHECK(held == 500_MiB);
}

TEST_CASE("a pod that is gone before it could be stopped is no eviction under way") {
  Scene scene;
  scene.pods.pods.clear();
  scene.begin(Scene::evict("a"));
  CHECK(scene.take_steps() == Steps{"intend a", "failed a", "tell that a went"});
  CHECK(scene.evictions.under_way() == 0);
}

TEST_CASE("while a pod is on its way out, what it holds is coming back") {
  Scene scene;
  scene.begin(Scene::evict("a"));
  REQUIRE(scene.evictions.releasing().size() == 1);
  CHECK(scene.evictions.releasing().front().bytes == 500_MiB);
  CHECK(scene.evictions.releasing().front().processes == 1);
  CHECK_FALSE(scene.evictions.lifts_fence({}));
  scene.stopper.report("a", FakeStopper::killed());
  CHECK(scene.evictions.lifts_fence({}));
  CHECK_FALSE(scene.evictions.has_ended("a"));
  scene.stopper.report("a", FakeStopper::ended());
  CHECK(scene.evictions.releasing().empty());
  CHECK(scene.evictions.has_ended("a"));
}

TEST_CASE("a displaced pod is stopped like any other, and whoever displaced it is told of its end") {
  Scene scene;
  scene.displace("a", 30s);
  CHECK(scene.take_steps() == Steps{"intend a", "tell that a is displaced", "save", "stop a"});
  CHECK(scene.stopper.begun.front().grace_period == 30s);
  scene.stopper.report("a", FakeStopper::ended());
  CHECK(scene.told == Steps{"a gone"});
}

TEST_CASE("a pod that goes as soon already is not stopped again; one that has more time is") {
  Scene scene;
  scene.displace("a", 30s);
  scene.displace("a", 60s);
  CHECK(scene.stopper.begun.size() == 1);
  scene.displace("a", 1s);
  REQUIRE(scene.stopper.begun.size() == 2);
  scene.stopper.begun.front().report(FakeStopper::ended());  // of the slower one: nobody waits for it any more
  CHECK(scene.told.empty());
  scene.stopper.report("a", FakeStopper::ended(true));
  CHECK(scene.told == Steps{"a stays", "a stays", "a stays"});
}

TEST_CASE("of a pod that is going already the time that is left counts, not the time that it was given") {
  Scene scene;
  scene.begin(Scene::evict("a", MemoryAvailable, 60s));
  scene.clock.advance(50s);
  scene.displace("a", 20s);
  CHECK(scene.stopper.begun.size() == 1);
  SUBCASE("one that would go sooner is stopped anew") {
    scene.displace("a", 5s);
    CHECK(scene.stopper.begun.size() == 2);
  }
  SUBCASE("so is one that is to go at once, however little is left") {
    scene.clock.advance(9s + 900ms);
    scene.displace("a", 1s);
    CHECK(scene.stopper.begun.size() == 1);
    scene.displace("a");
    CHECK(scene.stopper.begun.size() == 2);
  }
}

TEST_CASE("a pod that is dead is not stopped again, however long it had") {
  Scene scene;
  scene.begin(Scene::evict("a", NodefsAvailable, 60s));
  scene.stopper.report("a", FakeStopper::killed());
  scene.displace("a", 5s);
  scene.displace("a", {}, core::Displacement::NodeShutdown);
  CHECK(scene.stopper.begun.size() == 1);
  CHECK(scene.told.empty());
  scene.stopper.report("a", evict::PodGone{.time = {}});
  CHECK(scene.told == Steps{"a gone", "a gone"});
}

TEST_CASE("whoever displaces a pod that is not there is told at once") {
  Scene scene;
  scene.displace("gone");
  CHECK(scene.told == Steps{"gone gone"});
  CHECK(scene.take_steps() == Steps{"intend gone", "failed gone"});
}

TEST_CASE("what lies on a disk is removed with the pod, and waited for, but not for ever") {
  Scene scene;
  scene.observer.now = observed({{NodefsAvailable, 0, 100_GiB}});
  scene.begin(Scene::evict("a", NodefsAvailable));
  CHECK(scene.stopper.begun.front().afterwards == evict::Afterwards::remove_all);
  scene.stopper.report("a", FakeStopper::ended());
  scene.take_steps();
  SUBCASE("until half of it is back") {
    scene.clock.advance(1s);
    CHECK(std::ranges::find(scene.steps, "tell that a went") == scene.steps.end());
    scene.observer.now = observed({{NodefsAvailable, 300_MiB, 100_GiB}});
    scene.clock.advance(200ms);
    CHECK(std::ranges::find(scene.steps, "tell that a went") != scene.steps.end());
  }
  SUBCASE("for ten seconds") {
    scene.clock.advance(9s);
    CHECK(std::ranges::find(scene.steps, "tell that a went") == scene.steps.end());
    scene.clock.advance(1s);
    CHECK(std::ranges::find(scene.steps, "tell that a went") != scene.steps.end());
  }
}

TEST_CASE("the end of an eviction that waited for a disk is not that of a later one of the same pod") {
  const std::vector<evict::Progress> first_ends{evict::PodGone{.time = {}}, FakeStopper::ended()};
  for (const auto& first_end : first_ends) {
    for (const bool later_is_quicker : {false, true}) {
      CAPTURE(evict::name(first_end));
      CAPTURE(later_is_quicker);
      Scene scene;
      const auto ends_told = [&] { return std::ranges::count(scene.steps, "tell that a went"); };
      scene.observer.now = observed({{NodefsAvailable, 0, 100_GiB}});
      scene.begin(Scene::evict("a", NodefsAvailable));
      scene.stopper.report("a", FakeStopper::killed());
      scene.stopper.report("a", first_end);
      scene.clock.advance(1s);
      scene.displace("a", 30s);
      REQUIRE(scene.stopper.begun.size() == 2);
      if (!later_is_quicker) scene.clock.advance(10s);
      CHECK(ends_told() == 0);
      scene.stopper.report("a", FakeStopper::ended());
      scene.clock.advance(10s);
      CHECK(ends_told() == 1);
    }
  }
}

TEST_CASE("what a pod leaves on disk stays where the machine goes down, and of others its volumes go") {
  Scene scene;
  scene.displace("a");
  scene.displace("b", {}, core::Displacement::NodeShutdown);
  REQUIRE(scene.stopper.begun.size() == 2);
  CHECK(scene.stopper.begun.front().afterwards == evict::Afterwards::remove_volumes);
  CHECK(scene.stopper.begun.back().afterwards == evict::Afterwards::keep);
}

TEST_CASE("what lies on a disk is waited for as well where the pod goes for a limit of its own") {
  Scene scene;
  scene.observer.now = observed({{NodefsAvailable, 1_GiB, 100_GiB}});
  scene.begin(Scene::evict_for_limit("a", 600_MiB, 1_GiB));
  scene.stopper.report("a", FakeStopper::killed());
  scene.stopper.report("a", evict::PodGone{.time = {}});
  SUBCASE("until half of it is back") {
    scene.clock.advance(1s);
    CHECK_FALSE(scene.told_that_a_went());
    scene.observer.now = observed({{NodefsAvailable, 1_GiB + 300_MiB, 100_GiB}});
    scene.clock.advance(200ms);
    CHECK(scene.told_that_a_went());
  }
  SUBCASE("for ten seconds") {
    scene.clock.advance(9s);
    CHECK_FALSE(scene.told_that_a_went());
    scene.clock.advance(1s);
    CHECK(scene.told_that_a_went());
  }
  SUBCASE("though nothing else is left of it, and it may have been started again") {
    CHECK(holds_no_memory(scene.evictions.releasing()));
    scene.stopper.report("a", FakeStopper::ended());
    CHECK(scene.evictions.under_way() == 0);
    scene.clock.advance(1s);
    CHECK_FALSE(scene.told_that_a_went());
    CHECK(holds_no_memory(scene.evictions.releasing()));
    scene.clock.advance(9s);
    CHECK(scene.evictions.releasing().empty());
  }
}

TEST_CASE("what was measured on a disk of a pod that went for memory is waited for, unless the machine goes down") {
  Scene scene;
  scene.observer.now = observed({{NodefsAvailable, 1_GiB, 100_GiB}});
  const core::DiskRelease measured{NodefsAvailable, 600_MiB, 1_GiB};
  scene.policy.restore({.in_flight = {{.uid = "a", .cause = MemoryAvailable, .disk = measured},
                                      {.uid = "b", .cause = core::Displacement::NodeShutdown, .disk = measured}}},
                       scene.clock.now());
  scene.begin(Scene::evict("a"));
  scene.displace("b", {}, core::Displacement::NodeShutdown);
  for (const auto* name : {"a", "b"}) scene.stopper.report(name, evict::PodGone{.time = {}});
  scene.clock.advance(1s);
  CHECK_FALSE(scene.told_that_a_went());
  CHECK(std::ranges::find(scene.steps, "tell that b went") != scene.steps.end());
  scene.observer.now = observed({{NodefsAvailable, 1_GiB + 300_MiB, 100_GiB}});
  scene.clock.advance(200ms);
  CHECK(scene.told_that_a_went());
}

/// The pod a, which runs one container with this id.
pods::RuntimePodPtr running_with(const std::string& container) {
  auto runs = *runtime_pod(pod("a"));
  runs.containers.front().id = container;
  return std::make_shared<const pods::RuntimePod>(std::move(runs));
}

TEST_CASE("where a kubelet unmounts it, what lies in an emptyDir in memory is coming back, but not for ever") {
  Scene scene;
  scene.usage.in_tmpfs["a"] = 400_MiB;
  scene.begin(Scene::evict_with_volume("a", "Memory"));
  REQUIRE(scene.evictions.releasing().size() == 1);
  CHECK(scene.evictions.releasing().front().bytes == 500_MiB);
  scene.clock.settle();
  scene.stopper.report("a", FakeStopper::killed());
  scene.usage.working_sets["a"] = 0;
  CHECK(scene.evictions.releasing().front().bytes == 400_MiB);
  scene.stopper.report("a", evict::PodGone{.time = {}});
  scene.clock.advance(9s);
  CHECK_FALSE(scene.told_that_a_went());
  CHECK(scene.evictions.releasing().front().bytes == 400_MiB);
  SUBCASE("until half of it is back") {
    scene.usage.in_tmpfs["a"] = 200_MiB;
    scene.clock.advance(200ms);
    CHECK(scene.told_that_a_went());
  }
  SUBCASE("for ten seconds") {
    scene.clock.advance(1s);
    CHECK(scene.told_that_a_went());
    CHECK(scene.evictions.releasing().front().bytes == 0);
  }
  SUBCASE("unless the kubelet runs the pod again, which keeps it") {
    scene.pods.pods["a"] = running_with("c-again");
    CHECK(scene.evictions.releasing().front().bytes == 0);
    scene.clock.advance(200ms);
    CHECK(scene.told_that_a_went());
  }
}

TEST_CASE("where nobody unmounts it, or it lies on a disk, nothing of an emptyDir is awaited") {
  for (const bool on_disk : {false, true}) {
    CAPTURE(on_disk);
    Scene scene;
    scene.kubelet.runs = on_disk;
    scene.usage.in_tmpfs["a"] = 400_MiB;
    scene.begin(Scene::evict_with_volume("a", on_disk ? "" : "Memory"));
    scene.clock.settle();
    scene.stopper.report("a", FakeStopper::killed());
    scene.usage.working_sets["a"] = 0;
    CHECK(scene.evictions.releasing().front().bytes == 0);
    scene.stopper.report("a", evict::PodGone{.time = {}});
    scene.clock.settle();
    CHECK(scene.told_that_a_went());
  }
}

TEST_CASE("memory is back with the processes: no layer is removed, and no disk is waited for") {
  Scene scene;
  scene.begin(Scene::evict("a"));
  CHECK(scene.stopper.begun.front().afterwards == evict::Afterwards::remove_volumes);
  scene.stopper.report("a", FakeStopper::ended());
  scene.clock.settle();
  CHECK(scene.steps.back() == "save");
  CHECK(std::ranges::find(scene.steps, "read disks") == scene.steps.end());
}

TEST_CASE("a dry run touches nothing, and counts the pod as on its way for as long as a cleanup may take") {
  Scene scene{{.cleanup_timeout = 30s, .dry_run = true}};
  scene.begin(Scene::evict("a"));
  scene.displace("b");
  CHECK(scene.take_steps() == Steps{"intend a", "intend b"});
  CHECK(scene.told == Steps{"b gone"});
  CHECK(scene.evictions.releasing().empty());
  scene.clock.advance(29s);
  CHECK(scene.take_steps() == Steps{});
  scene.clock.advance(1s);
  CHECK(scene.take_steps() == Steps{"tell that a did not go"});
}

TEST_CASE("the evictor is told what the pod holds, so that it is read once before the kill") {
  Scene scene;
  scene.usage.working_sets["a"] = 300_MiB;
  scene.begin(Scene::evict("a"));
  REQUIRE(scene.stopper.begun.front().reached);
  CHECK(scene.stopper.begun.front().reached->held == 300_MiB);
  CHECK_FALSE(scene.stopper.begun.front().reached->killed);
}

TEST_CASE("the evictor is given the pod's spec with what the runtime lists: hooks and sidecars stand in no list") {
  Scene scene;
  auto eviction = Scene::evict("a");
  auto spec = *eviction.pod;
  spec.init_containers = {fixture::sidecar("proxy")};
  eviction.pod = std::make_shared<const core::Pod>(spec);
  scene.begin(eviction);
  const auto& begun = scene.stopper.begun.front();
  CHECK(*begun.pod->pod == spec);
  CHECK(begun.pod->containers == scene.pods.pods["a"]->containers);
  REQUIRE(begun.reached);
  CHECK_FALSE(begun.reached->resumed);
}

TEST_CASE("evictd's end waits for what is under way, with a deadline") {
  Scene scene;
  bool over = false;
  scene.begin(Scene::evict("a"));
  const auto wait = [&]() -> boost::asio::awaitable<void> {
    co_await scene.evictions.finished_within(5s);
    over = true;
  };
  async::spawn(scene.reactor.get_executor(), wait(), "waiting");
  scene.clock.advance(4s);
  CHECK_FALSE(over);
  CHECK(scene.stopper.hurried == 1);
  SUBCASE("it ends with the last cleanup") {
    scene.stopper.report("a", FakeStopper::ended());
    scene.clock.advance(20ms);
    CHECK(over);
  }
  SUBCASE("it ends when the time is over") {
    scene.clock.advance(1s);
    CHECK(over);
  }
}

namespace {

/// What an evictd leaves that has begun to evict the pod a, with these steps reported.
state::v1::AgentState left_by_earlier(core::Instant begun, bool killed, bool gone = false) {
  state::v1::AgentState left;
  const evict::EvictionRecord record{{.pod = std::make_shared<const core::Pod>(pod("a")), .cause = MemoryAvailable},
                                     {.begun = begun, .killed = killed, .gone = gone, .held = 500_MiB},
                                     7,
                                     {},
                                     runtime_pod(pod("a"))};
  *left.add_evictions() = state::keep(record);
  return left;
}

}  // namespace

TEST_CASE("what an earlier evictd had begun is finished, and not begun again") {
  Scene scene{{.cleanup_timeout = 30s}};
  std::vector<core::InFlight::Entry> in_flight{{.uid = "a", .cause = MemoryAvailable}};
  CHECK(
      scene.records.restore(left_by_earlier(scene.clock.now() - 2s, true), in_flight, 30s, scene.clock.now()).empty());
  CHECK(in_flight.front().state == core::InFlight::State::releasing);
  scene.evictions.go_on();
  CHECK(scene.take_steps() == Steps{"stop a"});
  const auto& begun = scene.stopper.begun.front();
  REQUIRE(begun.reached);
  CHECK(begun.reached->killed);
  CHECK(begun.reached->resumed);
  CHECK(begun.reached->held == 500_MiB);
  CHECK(begun.grace_period == 0s);
}

TEST_CASE("a pod that an earlier evictd began to stop goes once, though whoever wants it gone says so again") {
  Scene scene{{.cleanup_timeout = 30s}};
  auto left = left_by_earlier(scene.clock.now() - 20s, false);
  left.mutable_evictions(0)->set_grace_period_ns(core::Duration{120s}.count());
  std::vector<core::InFlight::Entry> in_flight{{.uid = "a", .cause = MemoryAvailable}};
  CHECK(scene.records.restore(left, in_flight, 30s, scene.clock.now()).empty());
  scene.evictions.go_on();
  CHECK(scene.take_steps() == Steps{"stop a"});
  // What is left was counted from a moment before the pod was told.
  scene.displace("a", 100s - 300ms, core::Displacement::NodeShutdown);
  CHECK(scene.take_steps() == Steps{});
  SUBCASE("and who waits for its end is told") {
    scene.stopper.report("a", FakeStopper::ended());
    CHECK(scene.told == Steps{"a gone"});
  }
  SUBCASE("also once its time is over") {
    scene.clock.advance(100s);
    scene.displace("a", {}, core::Displacement::NodeShutdown);
    CHECK(scene.take_steps() == Steps{});
  }
  SUBCASE("but sooner where it is to go sooner") {
    scene.displace("a", 10s, core::Displacement::NodeShutdown);
    CHECK(scene.stopper.begun.size() == 2);
  }
}

TEST_CASE("of a pod that was gone when an earlier evictd ended only the cgroup is awaited, and it went") {
  Scene scene{{.cleanup_timeout = 30s}};
  std::vector<core::InFlight::Entry> in_flight{{.uid = "a", .cause = MemoryAvailable}};
  const auto left = left_by_earlier(scene.clock.now() - 2s, true, true);
  CHECK(scene.records.restore(left, in_flight, 30s, scene.clock.now()).empty());
  scene.evictions.go_on();
  CHECK(scene.take_steps() == Steps{"stop a"});
  REQUIRE(scene.stopper.begun.front().reached);
  CHECK(scene.stopper.begun.front().reached->gone);
  scene.clock.settle();
  CHECK(scene.take_steps() == Steps{"tell that a went", "save"});
}

namespace {

/// What an evictd leaves that has evicted the pod a, or could not.
state::v1::AgentState left_by_ended(core::Instant now, bool went = true) {
  auto left = left_by_earlier(now - 60s, went, went);
  auto& evicted = *left.add_evicted();
  *evicted.mutable_eviction() = left.evictions(0);
  evicted.mutable_eviction()->clear_containers();  // as it is kept
  evicted.set_until_ns((now + 240s).time_since_epoch().count());
  left.clear_evictions();
  return left;
}

}  // namespace

TEST_CASE("after a restart nothing is reported of a pod that went before a list shows that it does not run again") {
  struct Case {
    bool has_ended;  // else its cgroup was awaited
    bool runs;
    std::string told;  // of one that runs it stays true that it went
  };
  const std::vector<Case> cases{
      {true, true, "POST"}, {true, false, "PATCH POST"}, {false, true, "POST"}, {false, false, "PATCH POST"}};
  for (const auto& [has_ended, runs, told] : cases) {
    CAPTURE(has_ended);
    CAPTURE(runs);
    Scene scene;
    const auto now = scene.clock.now();
    const auto left = has_ended ? left_by_ended(now) : left_by_earlier(now - 2s, true, true);
    std::vector<core::InFlight::Entry> in_flight{{.uid = "a", .cause = MemoryAvailable}};
    CHECK(scene.records.restore(left, in_flight, 30s, now).empty());
    async::spawn(scene.reactor.get_executor(), scene.cluster.run(), "reporting");
    scene.evictions.go_on();
    scene.clock.settle();
    CHECK(scene.sent.empty());
    if (runs)
      scene.pods.pods["a"] = running_with("c-again");
    else
      scene.pods.pods.erase("a");
    for (int list = 0; list < 2; ++list) {
      scene.evictions.pods_changed({});
      scene.clock.settle();
      CHECK(fmt::format("{}", fmt::join(scene.sent, " ")) == told);
    }
  }
}

TEST_CASE("after a restart a dead pod is reported also where the runtime still lists its container as running") {
  Scene scene;
  const auto now = scene.clock.now();
  std::vector<core::InFlight::Entry> in_flight{{.uid = "a", .cause = MemoryAvailable}};
  CHECK(scene.records.restore(left_by_earlier(now - 2s, true, true), in_flight, 30s, now).empty());
  async::spawn(scene.reactor.get_executor(), scene.cluster.run(), "reporting");
  scene.evictions.go_on();
  scene.evictions.pods_changed({});
  scene.clock.settle();
  CHECK(scene.sent == Steps{"PATCH", "POST"});
}

TEST_CASE("after a restart nothing is reported of a pod of which nothing could be killed") {
  for (const bool runs : {true, false}) {
    CAPTURE(runs);
    Scene scene;
    const auto now = scene.clock.now();
    std::vector<core::InFlight::Entry> in_flight{{.uid = "a", .cause = MemoryAvailable}};
    CHECK(scene.records.restore(left_by_ended(now, false), in_flight, 30s, now).empty());
    REQUIRE(scene.records.evicted().size() == 1);
    async::spawn(scene.reactor.get_executor(), scene.cluster.run(), "reporting");
    scene.evictions.go_on();
    if (!runs) scene.pods.pods.erase("a");
    for (int list = 0; list < 2; ++list) {
      scene.evictions.pods_changed({});
      scene.clock.settle();
      CHECK(scene.sent.empty());
    }
  }
}

TEST_CASE("after a restart a pod that is dead and still to be ended is reported at once") {
  Scene scene;
  std::vector<core::InFlight::Entry> in_flight{{.uid = "a", .cause = MemoryAvailable}};
  const auto now = scene.clock.now();
  CHECK(scene.records.restore(left_by_earlier(now - 2s, true), in_flight, 30s, now).empty());
  async::spawn(scene.reactor.get_executor(), scene.cluster.run(), "reporting");
  scene.evictions.go_on();
  scene.clock.settle();
  CHECK(scene.sent == Steps{"PATCH", "POST"});
  scene.evictions.pods_changed({});
  scene.clock.settle();
  CHECK(scene.sent.size() == 2);
}

TEST_CASE("while evictd only watches it decides and begins nothing; what was begun goes on") {
  Scene scene;
  scene.begin(Scene::evict("a"));
  scene.take_steps();
  scene.evictions.only_watch(true);
  CHECK_FALSE(scene.evictions.acts());
  CHECK(scene.evictions.lifts_fence({}));
  CHECK(scene.take_steps() == Steps{"tell that evictd only watches"});
  scene.begin(Scene::evict("b"));
  CHECK(scene.take_steps() == Steps{"intend b"});
  CHECK(scene.evictions.under_way() == 1);
  CHECK(scene.records.to_save().size() == 1);
  scene.stopper.report("a", FakeStopper::ended());
  CHECK(scene.take_steps() == Steps{"cleaned a", "save"});
  scene.clock.settle();
  scene.take_steps();

  // It may go at once when evictd acts again, and the pretence that is over ends nothing.
  scene.evictions.only_watch(false);
  CHECK(scene.take_steps() == Steps{"tell that evictd acts"});
  scene.begin(Scene::evict("b"));
  CHECK(scene.take_steps() == Steps{"intend b", "save", "stop b"});
  scene.clock.advance(30s);
  CHECK(scene.records.contains("b"));
  CHECK(scene.take_steps() == Steps{});
}

TEST_CASE("a node that goes down ends its pods also while evictd only watches, but not in a dry run") {
  Scene scene{{.dry_run = false}};
  scene.evictions.only_watch(true);
  scene.take_steps();
  scene.displace("a", 30s, core::Displacement::NodeShutdown);
  CHECK(scene.take_steps() == Steps{"intend a", "tell that a is displaced", "save", "stop a"});
  CHECK(scene.told.empty());
  scene.displace("b");
  CHECK(scene.take_steps() == Steps{"intend b"});
  Scene dry{{.dry_run = true}};
  dry.displace("a", 30s, core::Displacement::NodeShutdown);
  CHECK(dry.take_steps() == Steps{"intend a"});
}

TEST_CASE("a dry run stays one whatever is found") {
  Scene scene{{.dry_run = true}};
  scene.evictions.only_watch(true);
  scene.evictions.only_watch(false);
  CHECK_FALSE(scene.evictions.acts());
  CHECK(scene.take_steps() == Steps{});
}

}  // namespace evictd::agent::evictions_test
