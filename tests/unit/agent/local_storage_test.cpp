#include "agent/local_storage.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/loop.hpp"
#include "async/side_thread.hpp"
#include "async/spawn.hpp"
#include "cri/fake_runtime.hpp"
#include "cri/run.hpp"
#include "fixture/pods.hpp"
#include "pods/fake_source.hpp"
#include "pods/pod_builder.hpp"

namespace evictd::agent::local_storage_test {
namespace {

using namespace std::chrono_literals;
using fixture::pod;

core::Pod limited(const std::string& uid) {
  auto result = pod(uid);
  result.volumes.push_back(fixture::empty_dir("cache", "1Gi"));
  return result;
}

/// The pods a, whose emptyDir has a limit, and b, which has none. Their disks are fakes that answer at once.
struct Scene {
  test::HeardSpecs heard;
  Scene() {
    auto source = std::make_unique<test::FakeSource>(pods::SpecOrigin::Kubelet);
    specs = source.get();
    loop.catalog.add(std::move(source));
    loop.catalog.start(heard);
    specs->say(fixture::pods({limited("a"), pod("b")}));
    loop.usage.disks_answer = true;
    for (const std::string name : {"a", "b"}) {
      runtime.put(test::sandbox("s-" + name, name, name), test::sandbox_json("/kubepods/pod" + name));
      runtime.put(test::container("c-" + name, "s-" + name, "main"), test::container_json(1000));
    }
    runtime.start();
    loop.runtime.watch(loop.lister);
    loop.tracker.start();
    REQUIRE(test::run_until(loop.reactor, [this] { return loop.tracker.listed(); }));
    async::spawn(loop.reactor.get_executor(), loop.storage.run(), "local storage limits");
  }
  ~Scene() {
    loop.storage.stop();
    loop.tracker.stop();
    loop.catalog.stop();
    loop.reactor.poll();
  }
  bool measured(std::size_t times) {
    return test::run_until(loop.reactor, [&] { return loop.usage.measured.size() >= times; });
  }

  test::FakeRuntime runtime;
  test::FakeSource* specs = nullptr;
  Loop loop{{}, core::Signal::MemoryAvailable, runtime.endpoint()};
};

}  // namespace

TEST_CASE("only pods with a limit of their own are measured, and a pass follows") {
  Scene scene;
  CHECK(scene.measured(1));
  CHECK(scene.loop.usage.measured.front() == "a");
  const auto wake = test::run(scene.loop.reactor, scene.loop.alarms.next());
  CHECK(std::ranges::any_of(wake.reasons, [](const auto& reason) { return reason.source == core::WakeSource::Disk; }));
  for (const auto& uid : scene.loop.usage.measured) CHECK(uid == "a");
}

TEST_CASE("a pod that wrote is measured, and no other one that is not due") {
  Scene scene;
  auto& loop = scene.loop;
  loop.storage.stop();
  scene.specs->say(fixture::pods({limited("a"), limited("b")}));
  node::PodDisk disk{loop.reactor.get_executor(),
                     [&] { return std::make_unique<async::SideThread>(loop.reactor.get_executor(), "walker"); },
                     {.roots = {}, .interval = 1'000'000h}};
  const std::vector<node::PodName> both{{.uid = "a", .name_space = "shop", .name = "a"},
                                        {.uid = "b", .name_space = "shop", .name = "b"}};
  bool known = false;
  const auto measure = [&]() -> boost::asio::awaitable<void> {
    co_await disk.measure(both);
    known = true;
  };
  async::spawn(loop.reactor.get_executor(), measure(), "measuring");
  REQUIRE(test::run_until(loop.reactor, [&] { return known; }));
  loop.usage.measured.clear();
  LocalStorage storage{loop.reactor.get_executor(),
                       {.longest_wait = 10s},
                       {.disk = disk,
                        .usage = loop.usage,
                        .pods = loop.listed,
                        .catalog = loop.catalog,
                        .alarms = loop.alarms,
                        .clock = loop.clock}};
  async::spawn(loop.reactor.get_executor(), storage.run(), "local storage limits");
  storage.files_changed("b");
  CHECK(scene.measured(1));
  CHECK(loop.usage.measured == std::vector<std::string>{"b"});
  storage.stop();
  loop.reactor.poll();
}

TEST_CASE("a pod that wrote, and limits that changed, are looked at without waiting for the interval") {
  Scene scene;
  REQUIRE(scene.measured(1));
  scene.loop.storage.files_changed("a");
  CHECK(scene.measured(2));
  scene.loop.storage.limits_changed();
  CHECK(scene.measured(3));
}

TEST_CASE("the logs and local volumes of each pod are watched") {
  Scene scene;
  const auto& armed = scene.loop.wake_source->armed;
  REQUIRE(test::run_until(scene.loop.reactor, [&] { return !armed.empty(); }));
  const auto watched = [&] { return armed.back().watched; };
  const auto first = watched();
  REQUIRE(first->size() == 2);
  CHECK(first->front()->uid == "a");
  CHECK(first->front()->directories == node::local_directories({}, {.uid = "a", .name_space = "shop", .name = "a"}));
  // A pod that stays is the same; one of another name has other directories.
  auto renamed = pod("a");
  renamed.name_space = "elsewhere";
  scene.loop.storage.watch(fixture::pods({pod("b"), renamed}));
  const auto second = watched();
  CHECK(second->at(1)->directories.front().contains("elsewhere"));
  scene.loop.storage.watch(fixture::pods({renamed}));
  CHECK(*watched() == wake::WatchedPods{second->at(1)});
}

TEST_CASE("while a disk does not answer nothing else is measured, and the end waits for it no longer than the loop") {
  Scene scene;
  scene.loop.usage.disks_answer = false;
  REQUIRE(scene.measured(1));
  const auto before = scene.loop.usage.measured.size();
  scene.loop.storage.files_changed("a");
  scene.loop.reactor.restart();
  scene.loop.reactor.run_for(50ms);
  CHECK(scene.loop.usage.measured.size() <= before + 1);
  scene.loop.storage.stop();
  scene.loop.reactor.restart();
  scene.loop.reactor.run_for(50ms);
  CHECK(scene.loop.usage.measured.size() <= before + 1);
}

}  // namespace evictd::agent::local_storage_test
