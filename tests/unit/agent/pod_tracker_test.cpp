#include "agent/pod_tracker.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "agent/loop.hpp"
#include "cri/fake_runtime.hpp"
#include "cri/run.hpp"
#include "pods/pod_builder.hpp"

namespace evictd::agent::pod_tracker_test {
namespace {

using namespace std::chrono_literals;
using fixture::dir;
using fixture::file;
using Names = std::vector<std::string>;

/// A runtime that lists pods, and the tracker that follows it.
struct Tracked final : private PodListener {
  explicit Tracked(const std::vector<std::string>& names = {}) {
    for (const auto& name : names) put(name);
    runtime.start();
    loop.tracker.tell(*this);
    loop.runtime.watch(loop.lister);
  }
  ~Tracked() override { loop.tracker.stop(); }

  void pods_changed(const core::PodList&) override { ++lists; }
  void put(const std::string& name) {
    runtime.put(test::sandbox("s-" + name, name, name), test::sandbox_json("/kubepods/pod" + name));
    runtime.put(test::container("c-" + name, "s-" + name, "main"), test::container_json(1000));
  }
  void start() {
    loop.tracker.start();
    REQUIRE(test::run_until(loop.reactor, [this] { return loop.tracker.listed(); }));
  }
  /// Has the pods listed, and waits for that.
  void list() {
    const auto before = lists;
    loop.tracker.list_for_pass();
    REQUIRE(test::run_until(loop.reactor, [&] { return lists > before; }));
  }
  [[nodiscard]] Names names() const {
    Names names;
    for (const auto& pod : *loop.tracker.pods()) names.push_back(pod->uid);
    std::ranges::sort(names);
    return names;
  }
  void evict(const std::string& uid) {
    loop.running.pods[uid] = loop.tracker.find(uid);
    core::Turn turn{loop.reason(core::WakeSource::Other)};
    loop.evictions.begin({.pod = loop.tracker.find(uid)->pod, .cause = core::Signal::PidAvailable, .message = {}},
                         turn);
  }

  test::FakeRuntime runtime;
  Loop loop{{}, core::Signal::MemoryAvailable, runtime.endpoint()};
  int lists = 0;
};

}  // namespace

TEST_CASE("the pods are those that the runtime lists, once it has") {
  Tracked tracked{{"p", "q"}};
  CHECK_FALSE(tracked.loop.tracker.listed());
  CHECK(tracked.names().empty());
  tracked.start();
  CHECK(tracked.names() == Names{"p", "q"});
  CHECK(tracked.lists == 1);
  CHECK(tracked.loop.did("save"));
  tracked.put("r");
  tracked.list();
  CHECK(tracked.names() == Names{"p", "q", "r"});
}

TEST_CASE("a list that cannot be had takes no pod away") {
  Tracked tracked{{"p"}};
  tracked.start();
  tracked.runtime.fail("ListPodSandbox", 13);
  const auto calls = tracked.runtime.calls("ListPodSandbox");
  tracked.loop.tracker.list_for_pass();
  REQUIRE(test::run_until(tracked.loop.reactor, [&] { return tracked.runtime.calls("ListPodSandbox") > calls; }));
  CHECK(tracked.names() == Names{"p"});
}

TEST_CASE("a victim's cgroup is read until its memory is back, also when the runtime lists it no more") {
  Tracked tracked{{"p", "q"}};
  tracked.start();
  tracked.evict("p");
  tracked.runtime.remove_sandbox("s-p");
  tracked.list();
  CHECK(tracked.names() == Names{"q"});
  CHECK(tracked.loop.cgroups.memory("p") != nullptr);
  tracked.loop.stopper.report("p", FakeStopper::ended());
  tracked.list();
  CHECK(tracked.loop.cgroups.memory("p") == nullptr);
}

TEST_CASE("an evicted pod has returned when a list that is younger than its end has it running") {
  Tracked tracked{{"p"}};
  tracked.start();
  tracked.evict("p");
  tracked.loop.stopper.report("p", FakeStopper::ended());
  tracked.list();
  const auto later = tracked.loop.clock.now() + 1s;
  CHECK(tracked.loop.records.ended_before(later, later) == Names{"p"});
  tracked.loop.clock.advance(1s);
  tracked.list();
  CHECK(tracked.loop.records.ended_before(later + 1s, later + 1s).empty());
}

TEST_CASE("a pod that no list names is known by its cgroup, and by the list as soon as it is on it") {
  Tracked tracked{{"p"}};
  tracked.start();
  tracked.loop.tree.add("cgroup/memory/kubepods", dir("podnew", {file("cgroup.procs", "77\n")}));
  tracked.loop.tree.add("proc", dir("77", {file("oom_score_adj", "1000\n")}));
  tracked.loop.tracker.changed();
  CHECK(tracked.names() == Names{"new", "p"});
  REQUIRE(tracked.loop.tracker.find("new"));
  CHECK(tracked.loop.tracker.find("new")->cgroup == "/kubepods/podnew");
  tracked.put("new");
  tracked.list();
  CHECK(tracked.names() == Names{"new", "p"});
  CHECK(tracked.loop.tracker.find("new")->sandbox_id == "s-new");
}

TEST_CASE("a victim whose cgroup is still there is no pod that no list names") {
  Tracked tracked{{"p"}};
  tracked.start();
  tracked.loop.tree.add("cgroup/memory/kubepods", dir("podp", {file("cgroup.procs", "77\n")}));
  tracked.loop.tree.add("proc", dir("77", {file("oom_score_adj", "1000\n")}));
  tracked.evict("p");
  tracked.runtime.remove_sandbox("s-p");
  tracked.list();
  CHECK(tracked.names().empty());
}

TEST_CASE("the listed pods' files are watched, and nobody else's") {
  Tracked tracked{{"p"}};
  tracked.start();
  const auto& files = *tracked.loop.wake_source->armed.back().files;
  REQUIRE(files.size() == 1);
  CHECK(files.front().uid == "p");
}

}  // namespace evictd::agent::pod_tracker_test
