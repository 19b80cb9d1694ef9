#include "agent/pod_tracker.hpp"

#include <doctest/doctest.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/error_code.hpp>

#include "agent/loop.hpp"
#include "cri/fake_runtime.hpp"
#include "cri/run.hpp"
#include "os/now.hpp"
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
  ~Tracked() override {
    loop.events.stop();
    loop.tracker.stop();
  }

  void pods_changed(const core::PodList&) override { ++lists; }
  void put(const std::string& name) {
    runtime.put(test::sandbox("s-" + name, name, name), test::sandbox_json("/kubepods/pod" + name));
    runtime.put(test::container("c-" + name, "s-" + name, "main"), test::container_json(1000));
  }
  void start() {
    loop.tracker.start();
    REQUIRE(test::run_until(loop.reactor, [this] { return loop.tracker.listed(); }));
  }
  /// Listens to the runtime, which has that on trial until it says something.
  void listen() {
    loop.events.start(loop.tracker);
    REQUIRE(test::run_until(loop.reactor, [this] { return runtime.listeners() == 1; }));
    runtime.tell();
    REQUIRE(test::run_until(loop.reactor, [this] { return loop.events.heard(); }));
    settle();
  }
  /// Until no list is under way, or due at once.
  void settle() {
    auto last = -1;
    auto until = os::now();
    REQUIRE(test::run_until(loop.reactor, [&] {
      if (std::exchange(last, listings()) != listings()) until = os::now() + 300ms;
      return os::now() >= until;
    }));
  }
  [[nodiscard]] int listings() const { return runtime.calls("ListPodSandbox"); }
  bool wait_for(const Names& expected) {
    return test::run_until(loop.reactor, [&] { return names() == expected; });
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

TEST_CASE("of very many pods the cgroups are taken in several turns, before the list counts for anybody") {
  Names names;
  for (int i = 0; i < 600; ++i) names.push_back("p" + std::to_string(i));
  Tracked tracked{names};
  tracked.loop.tracker.start();
  std::vector<std::size_t> known;  // in each turn before the list counts
  REQUIRE(test::run_until(tracked.loop.reactor, [&] {
    if (!tracked.loop.tracker.listed()) {
      known.push_back(tracked.loop.cgroups.size());
      REQUIRE(tracked.loop.listed.runtime_pods().empty());
    }
    return tracked.loop.tracker.listed();
  }));
  CHECK(std::ranges::count(known, 256) >= 1);
  CHECK(std::ranges::count(known, 512) >= 1);
  CHECK(std::ranges::count(known, 600) >= 1);
  CHECK(tracked.loop.cgroups.size() == 600);
  CHECK(tracked.loop.tracker.pods()->size() == 600);
}

TEST_CASE("a list that somebody else asked for counts at once: whoever goes by it finds its pods") {
  Tracked t{{"a", "b"}};
  const auto asked = os::now();
  const auto listed = test::run(t.loop.reactor, t.loop.listed.refresh());
  REQUIRE(listed);
  CHECK(t.loop.tracker.find("a") == nullptr);
  t.loop.tracker.take_list(listed, asked);
  CHECK(t.loop.tracker.find("a") != nullptr);
  CHECK(t.names() == Names{"a", "b"});
}

TEST_CASE(
    "whoever makes ready for the pods does so after a pass that the kernel wakes, once for lists that come together") {
  struct Ready final : PodListener {
    void pods_changed(const core::PodList&) override { order.emplace_back("ready"); }
    Names order;
  } ready;
  Tracked t{{"a"}};
  t.loop.tracker.tell_later(ready);
  boost::asio::posix::stream_descriptor crossing{t.loop.reactor, ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  crossing.async_wait(boost::asio::posix::stream_descriptor::wait_read, [&](boost::system::error_code) {
    t.loop.wakes.notify(t.loop.reason(core::WakeSource::Memcg).reasons.front());
  });
  const auto pass = [&]() -> boost::asio::awaitable<void> {
    for (;;) {
      const auto wake = co_await t.loop.wakes.next();
      if (wake.reasons.front().source != core::WakeSource::Memcg) continue;
      CHECK(t.names() == Names{"a"});
      ready.order.emplace_back("pass");
    }
  };
  boost::asio::co_spawn(t.loop.reactor, pass(), boost::asio::detached);
  const auto listed = test::run(t.loop.reactor, t.loop.listed.refresh());
  boost::asio::post(t.loop.reactor, [&] {
    REQUIRE(::eventfd_write(crossing.native_handle(), 1) == 0);
    t.loop.tracker.take_list(listed, os::now());
    t.loop.tracker.take_list(listed, os::now());
    CHECK(t.lists == 2);
    CHECK(t.loop.did("save"));
  });
  REQUIRE(test::run_until(t.loop.reactor, [&] { return ready.order.size() == 2; }));
  t.loop.reactor.restart();
  t.loop.reactor.poll();
  CHECK(ready.order == Names{"pass", "ready"});
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

TEST_CASE("of a list in which nothing is new everybody hears, and the pods are those that they were") {
  Tracked tracked{{"p", "q"}};
  tracked.start();
  const auto pods = tracked.loop.tracker.pods();
  const auto p = tracked.loop.tracker.find("p");
  tracked.list();
  CHECK(tracked.lists == 2);
  CHECK(tracked.loop.tracker.pods() == pods);
  CHECK(tracked.loop.tracker.find("p") == p);
  tracked.put("r");
  tracked.list();
  CHECK(tracked.loop.tracker.pods() != pods);
  CHECK(tracked.loop.tracker.find("p") == p);
}

TEST_CASE("a listed pod of whose cgroup the runtime tells nothing has the one that comes later, with the next list") {
  Tracked tracked;
  tracked.runtime.put(test::sandbox("s-p", "p", "p"), test::sandbox_json(""));
  tracked.start();
  REQUIRE(tracked.names() == Names{"p"});
  CHECK(tracked.loop.tracker.find("p")->cgroup.empty());
  tracked.loop.tree.add("cgroup/memory/kubepods", dir("podp", {file("cgroup.procs", "")}));
  tracked.list();
  CHECK(tracked.loop.tracker.find("p")->cgroup == "/kubepods/podp");
}

TEST_CASE("an evicted pod has returned when a list that is younger than its end has it running") {
  Tracked tracked{{"p"}};
  tracked.start();
  tracked.evict("p");
  SUBCASE("with a container that was not killed") {
    tracked.loop.stopper.report("p", FakeStopper::killed());
    tracked.runtime.remove_container("c-p");
    tracked.runtime.put(test::container("c-again", "s-p", "main"), test::container_json(1000));
  }
  SUBCASE("or where nothing was killed") {}
  tracked.loop.stopper.report("p", FakeStopper::ended());
  tracked.list();
  const auto later = tracked.loop.clock.now() + 1s;
  CHECK(tracked.loop.records.ended_before(later, later) == Names{"p"});
  tracked.loop.clock.advance(1s);
  tracked.loop.cluster.evicted({.name_space = "default", .name = "p", .uid = "p", .message = {}, .time = {}});
  CHECK(tracked.loop.cluster.status().waiting == 2);
  tracked.list();
  CHECK(tracked.loop.records.ended_before(later + 1s, later + 1s).empty());
  CHECK(tracked.loop.cluster.status().waiting == 1);  // its Event
}

TEST_CASE("a dead pod does not run again where the runtime still lists the container that was killed as running") {
  Tracked tracked{{"p"}};
  tracked.start();
  tracked.evict("p");
  tracked.loop.stopper.report("p", FakeStopper::killed());
  tracked.loop.stopper.report("p", FakeStopper::ended(true));
  tracked.list();
  tracked.loop.clock.advance(1s);
  tracked.loop.cluster.evicted({.name_space = "default", .name = "p", .uid = "p", .message = {}, .time = {}});
  tracked.list();
  const auto later = tracked.loop.clock.now() + 1s;
  CHECK(tracked.loop.records.ended_before(later, later) == Names{"p"});
  CHECK(tracked.loop.records.has_ended("p"));
  CHECK(tracked.loop.cluster.status().waiting == 2);

  tracked.runtime.put(test::container("c-again", "s-p", "main"), test::container_json(1000));
  tracked.list();
  CHECK(tracked.loop.records.ended_before(later, later).empty());
  CHECK(tracked.loop.cluster.status().waiting == 1);
}

TEST_CASE("a pod with processes that outlived the kill runs, as the runtime says") {
  Tracked tracked{{"p"}};
  tracked.loop.tree.add("cgroup/memory/kubepods", dir("podp", {file("cgroup.procs", "77\n")}));
  tracked.loop.tree.add("proc", dir("77", {file("oom_score_adj", "1000\n")}));
  tracked.start();
  tracked.evict("p");
  tracked.loop.stopper.report("p", FakeStopper::killed());
  tracked.loop.stopper.report("p", FakeStopper::ended(true));
  tracked.loop.clock.advance(1s);
  tracked.list();
  CHECK_FALSE(tracked.loop.records.has_ended("p"));
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

TEST_CASE("a pass knows a pod whose processes came after its cgroup, though the runtime has not told of it yet") {
  Tracked tracked{{"p"}};
  tracked.start();
  tracked.listen();
  tracked.loop.tree.add("cgroup/memory/kubepods", dir("podnew", {file("cgroup.procs", "")}));
  tracked.loop.tracker.changed();
  CHECK(tracked.names() == Names{"p"});
  tracked.loop.tree.write("cgroup/memory/kubepods/podnew/cgroup.procs", "77\n");
  tracked.loop.tree.add("proc", dir("77", {file("oom_score_adj", "1000\n")}));
  tracked.loop.tracker.look_at_unlisted();
  CHECK(tracked.names() == Names{"new", "p"});
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

TEST_CASE("a pod that was seen gone and has processes again before any list names it is known by its cgroup") {
  Tracked tracked{{"p"}};
  tracked.start();
  tracked.evict("p");
  tracked.runtime.remove_sandbox("s-p");
  tracked.list();
  const auto start_again = [&] {
    tracked.loop.tree.add("cgroup/memory/kubepods", dir("podp", {file("cgroup.procs", "77\n")}));
    tracked.loop.tree.add("proc", dir("77", {file("oom_score_adj", "1000\n")}));
    tracked.loop.tracker.changed();
  };
  SUBCASE("one that was") {
    tracked.loop.stopper.report("p", evict::PodGone{.time = {}});
    tracked.loop.stopper.report("p", FakeStopper::ended());
    start_again();
    CHECK(tracked.names() == Names{"p"});
    REQUIRE(tracked.loop.tracker.find("p"));
    CHECK(tracked.loop.tracker.find("p")->cgroup == "/kubepods/podp");
    // The eviction ends in a turn of its own: before that the state machine would take no notice.
    const auto& evicted = tracked.loop.records.evicted().at("p");
    CHECK_FALSE(evicted.returned);
    CHECK(test::run_until(tracked.loop.reactor, [&] {
      tracked.loop.tracker.changed();
      return evicted.returned;
    }));
  }
  SUBCASE("but not what may be left of one for whose end the wait took too long") {
    tracked.loop.stopper.report("p", FakeStopper::ended(true));
    start_again();
    CHECK(tracked.names().empty());
  }
}

TEST_CASE("the listed pods' files are watched, and nobody else's") {
  Tracked tracked{{"p"}};
  tracked.start();
  REQUIRE(test::run_until(tracked.loop.reactor, [&] { return !tracked.loop.wake_source->armed.empty(); }));
  const auto& files = *tracked.loop.wake_source->armed.back().watched;
  REQUIRE(files.size() == 1);
  CHECK(files.front()->uid == "p");
}

TEST_CASE("what the runtime tells is listed at once, with no help from the clock") {
  Tracked tracked{{"p"}};
  tracked.start();
  tracked.listen();
  tracked.put("q");
  tracked.runtime.tell();
  CHECK(tracked.wait_for({"p", "q"}));
  tracked.runtime.remove_sandbox("s-p");
  tracked.runtime.tell();
  CHECK(tracked.wait_for({"q"}));
}

TEST_CASE(
    "a new cgroup has pods listed once where the runtime tells of its pods, and again and again where it does not") {
  Tracked tracked{{"p"}};
  tracked.start();
  SUBCASE("it tells") {
    tracked.listen();
    const auto before = tracked.listings();
    tracked.loop.tracker.changed();
    tracked.settle();
    CHECK(tracked.listings() == before);
    CHECK(test::run_until(tracked.loop.reactor, [&] { return tracked.listings() == before + 1; }));
  }
  SUBCASE("it does not") {
    const auto before = tracked.listings();
    tracked.loop.tracker.changed();
    CHECK(test::run_until(tracked.loop.reactor, [&] { return tracked.listings() >= before + 3; }));
  }
}

TEST_CASE("a flood of events has pods listed now and then, keeps nobody from the reactor, and hides no pod") {
  Tracked tracked{{"p"}};
  tracked.start();
  tracked.listen();
  const auto before = tracked.listings();
  // More than the windows and the sockets hold, and than is read within a minute and a half.
  constexpr int flood = 100'000;
  tracked.runtime.tell(flood, std::string(4096, 'c'));
  // Something else that the reactor has to do meanwhile.
  int turns = 0;
  for (; turns < 50; ++turns) {
    bool done = false;
    boost::asio::post(tracked.loop.reactor, [&] { done = true; });
    REQUIRE(test::run_until(tracked.loop.reactor, [&] { return done; }));
    static_cast<void>(tracked.loop.reactor.run_one_for(10ms));
  }
  tracked.put("q");
  CHECK(tracked.wait_for({"p", "q"}));
  CHECK(tracked.runtime.told() < flood);  // it has to wait
  CHECK(tracked.listings() - before < 100);
}

TEST_CASE("what pods hold is read by passes where the runtime tells of its pods, and by lists where it does not") {
  Tracked tracked{{"p"}};
  auto& loop = tracked.loop;
  loop.tree.add("cgroup/memory/kubepods", dir("podp", fixture::v1_memory({.usage = 100})));
  tracked.start();
  const auto held = [&] { return loop.reader.memory_as_listed(loop.tracker.pods()).front()->working_set; };
  const auto hold = [&](const char* bytes) {
    loop.tree.write("cgroup/memory/kubepods/podp/memory.usage_in_bytes", bytes);
  };
  REQUIRE(test::run_until(loop.reactor, [&] { return held() == 100; }));
  SUBCASE("it tells") {
    tracked.listen();
    loop.start();
    hold("200");
    tracked.list();
    tracked.settle();
    CHECK(held() == 100);
    loop.clock.advance(10s);
    loop.wake(core::WakeSource::Psi);
    CHECK(held() == 100);
    loop.wake(core::WakeSource::Timer);
    CHECK(held() == 200);
    hold("300");
    loop.wake(core::WakeSource::Timer);  // in the same moment
    CHECK(held() == 200);
    loop.clock.advance(2min);  // nobody has looked for so long
    tracked.list();
    CHECK(test::run_until(loop.reactor, [&] { return held() == 300; }));
  }
  SUBCASE("it does not") {
    hold("200");
    loop.tracker.read_again();
    CHECK(held() == 100);
    tracked.list();
    CHECK(test::run_until(loop.reactor, [&] { return held() == 200; }));
  }
}

TEST_CASE("a pod that a list shows and no event told of has the runtime listened to anew") {
  Tracked tracked{{"p"}};
  tracked.start();
  tracked.listen();
  const auto streams = tracked.runtime.calls("GetContainerEvents");
  tracked.put("q");  // without a word
  tracked.loop.tracker.changed();
  CHECK(tracked.wait_for({"p", "q"}));
  CHECK(test::run_until(tracked.loop.reactor,
                        [&] { return tracked.runtime.calls("GetContainerEvents") == streams + 1; }));
}

TEST_CASE("an event that comes a little behind the list is no reason for doubt") {
  Tracked tracked{{"p"}};
  tracked.start();
  tracked.listen();
  const auto streams = tracked.runtime.calls("GetContainerEvents");
  tracked.put("q");
  tracked.list();
  tracked.runtime.tell();
  tracked.settle();
  const auto before = tracked.listings();
  tracked.loop.tracker.changed();
  CHECK(test::run_until(tracked.loop.reactor, [&] { return tracked.listings() > before; }));
  CHECK(tracked.runtime.calls("GetContainerEvents") == streams);
}

}  // namespace evictd::agent::pod_tracker_test
