#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <chrono>
#include <filesystem>
#include <string_view>
#include <thread>
#include <vector>

#include "fault_scene.hpp"
#include "faulty_runc.hpp"
#include "history.hpp"
#include "small_disk.hpp"
#include "testbed/agent.hpp"
#include "testbed/testbed.hpp"
#include "testbed/wait.hpp"
#include "victims.hpp"

namespace integration::faults_runtime_test {

using namespace std::chrono_literals;
using evictd::v1::Event;
using testbed::Agent;
using testbed::Testbed;

namespace {

Testbed::Options node_with(const FaultyRunc& runc) {
  auto options = integration::gibi_node;
  options.containerd.runc = runc.program();
  return options;
}

const auto by_the_runtime =
    Agent::Options{.thresholds = {}, .eviction = "stopTimeout: 3s", .sections = "kill: {mode: cri}\n"};

bool says(const std::vector<Event>& events, Event::Kind kind, std::string_view text) {
  return std::ranges::any_of(events, [&](const Event& event) {
    return event.kind() == kind && event.message().find(text) != std::string::npos;
  });
}

}  // namespace

TEST_SUITE_BEGIN("faults");

TEST_CASE("containerd answers errors, for runc fails: the pod is dead all the same, and cleaned up once runc works") {
  const FaultyRunc runc;
  FaultScene scene{{}, node_with(runc)};
  runc.fail();
  scene.cross();
  scene.wait_until_dead();
  FaultScene::settle();  // containerd has tried what it wanted to try
  runc.work();
  scene.wait_until_cleaned();
  scene.check();
}

TEST_CASE("containerd answers errors when it is asked to stop the pod: evictd kills it itself") {
  const FaultyRunc runc;
  FaultScene scene{by_the_runtime, node_with(runc)};
  runc.fail();
  scene.cross();
  scene.wait_until_dead();
  runc.work();
  scene.wait_until_cleaned();
  scene.check();
  CHECK(says(history(*scene.agent), Event::EVICTION_FAILED, "runc fails on purpose"));
}

TEST_CASE("runc hangs: the pod is dead all the same, and cleaned up once runc goes on") {
  const FaultyRunc runc;
  FaultScene scene{{}, node_with(runc)};
  runc.hang();
  scene.cross();
  scene.wait_until_dead();
  FaultScene::settle();
  runc.work();
  scene.wait_until_cleaned();
  scene.check();
}

TEST_CASE("runc hangs when the runtime is to stop the pod: evictd kills it when the time to stop is over") {
  const FaultyRunc runc;
  FaultScene scene{by_the_runtime, node_with(runc)};
  runc.hang();
  scene.cross();
  scene.wait_until_dead();
  runc.work();
  scene.wait_until_cleaned();
  scene.check();
}

TEST_CASE("runc hangs for longer than the cleanup may take: that is said, and the next pod is evicted none the less") {
  const FaultyRunc runc;
  FaultScene scene{{.thresholds = {}, .eviction = "cleanupTimeout: 3s"}, node_with(runc)};
  runc.hang();
  scene.cross();
  scene.wait_until_dead();
  const auto done = scene.agent->events().wait_for(Event::CLEANUP_DONE, "default/hog", FaultScene::long_enough);
  CHECK(done.cleanup_done().timed_out());
  runc.work();
  const integration::Follower next{scene.testbed, "next"};
  scene.agent->wait_for_pod(next.running.uid);
  next.hold(550 * integration::mebi);
  scene.agent->events().wait_for(Event::CLEANUP_DONE, "default/next", FaultScene::long_enough);
  CHECK(scene.testbed.cri().is_running(scene.chill));
  CHECK(scene.testbed.cri().is_running(scene.vital));
  CHECK(count(history(*scene.agent), Event::EVICTION_INTENDED, "default/hog") == 1);
}

TEST_CASE("runc hangs for longer than the cleanup may take: a pod beyond its limit of local storage goes once") {
  const SmallDisk disk{{.bytes = 400 * mebi}};
  const FaultyRunc runc;
  Testbed testbed{{.node = {.memory_limit = 1024 * mebi},
                   .containerd = {.root = disk.directory("containerd"), .runc = runc.program()}}};
  Agent agent{testbed,
              {.thresholds = "evictionHard: {nodefs.available: 1Mi}",
               .kubelet = fmt::format("podLogsDir: {}\n", disk.directory("logs").native()),
               .node = fmt::format("kubeletRoot: {}, diskUsageInterval: 1s", disk.directory("kubelet").native()),
               .notifier = "fallbackInterval: 500ms",
               .eviction = "cleanupTimeout: 3s",
               .keep_history = true}};
  auto spec = pod("over", evictd::core::QosClass::BestEffort, {});
  spec.containers = {{.command = {"sh", "-c", "load write /data 30Mi 60Mi/s; exec load hold 1Mi"}}};
  spec.annotations["evictd.io/pod-spec"] =
      R"({"containers": [{"name": "main", "resources": {"limits": {"ephemeral-storage": "20Mi"}}}]})";
  const auto over = testbed.cri().run_pod(spec);
  runc.hang();
  const auto done = agent.events().wait_for(Event::CLEANUP_DONE, "default/over", FaultScene::long_enough);
  CHECK(done.cleanup_done().timed_out());
  CHECK_FALSE(has_processes(testbed, over));
  CHECK(testbed.cri().is_running(over));  // as containerd has it
  std::this_thread::sleep_for(6s);        // lists and looks at the disk come and go
  CHECK(testbed.cri().is_running(over));
  runc.work();
  testbed::wait_until("containerd is through with the pod", FaultScene::long_enough,
                      [&] { return nothing_left(testbed, over); });
  const auto events = history(agent);
  CHECK(count(events, Event::EVICTION_INTENDED, "default/over") == 1);
  CHECK(count(events, Event::CONTAINERS_KILLED, "default/over") == 1);
}

TEST_CASE("another program listens where containerd did, and answers nothing: the pod is dead all the same") {
  FaultScene scene;
  const auto socket = scene.testbed.containerd().socket();
  scene.testbed.containerd().kill9();
  {
    std::filesystem::remove(socket);
    boost::asio::io_context nobody;
    const boost::asio::local::stream_protocol::acceptor foreign{nobody, socket.native()};
    scene.cross();
    scene.wait_until_dead();
  }
  std::filesystem::remove(socket);
  scene.testbed.containerd().start();
  scene.wait_until_cleaned();
  scene.check();
}

TEST_CASE("runc fails, and the pod is where evictd may kill nobody: it is not said to be dead") {
  const FaultyRunc runc;
  Testbed testbed{node_with(runc)};
  std::filesystem::create_directory(testbed.node().memory_directory() / "elsewhere");
  const integration::Follower hog{testbed, "hog"};
  auto options = by_the_runtime;
  options.thresholds = "evictionHard: {memory.available: 300Mi}";
  options.node = "podsCgroup: elsewhere";
  options.eviction = "stopTimeout: 3s, cleanupTimeout: 3s";
  Agent agent{testbed, options};
  agent.wait_for_pods(1);
  runc.fail();
  hog.hold(800 * integration::mebi);
  const auto done = agent.events().wait_for(Event::CLEANUP_DONE, "default/hog", FaultScene::long_enough);
  CHECK(done.cleanup_done().timed_out());
  CHECK(integration::has_processes(testbed, hog.running));
  CHECK(count(history(agent), Event::CONTAINERS_KILLED, "default/hog") == 0);
}

TEST_CASE("containerd is killed and comes back within a pod's grace period: the pod has what is left of it") {
  Testbed testbed{integration::gibi_node};
  Agent agent{testbed,
              {.thresholds = "evictionSoft: {memory.available: 500Mi}\n"
                             "evictionSoftGracePeriod: {memory.available: 100ms}\n"
                             "evictionMaxPodGracePeriod: 20\n",
               .eviction = "stopTimeout: 30s"}};
  const integration::Follower hog{testbed, "hog", 8 * integration::mebi, {"--ignore-term", "follow", "/control/size"}};
  agent.wait_for_pods(1);
  hog.hold(700 * integration::mebi);
  const auto intended = agent.events().wait_for(Event::EVICTION_INTENDED, "default/hog", FaultScene::long_enough);
  testbed.containerd().kill9();
  std::this_thread::sleep_for(2s);  // by far longer than a kill takes
  CHECK(integration::has_processes(testbed, hog.running));
  testbed.containerd().start();
  const auto killed = agent.events().wait_for(Event::CONTAINERS_KILLED, "default/hog", FaultScene::long_enough);
  CHECK(killed.containers_killed().method() == "StopContainer");
  CHECK(std::chrono::nanoseconds(killed.monotonic_ns() - intended.monotonic_ns()) >= 19s);
  const auto done = agent.events().wait_for(Event::CLEANUP_DONE, "default/hog", FaultScene::long_enough);
  CHECK_FALSE(done.cleanup_done().timed_out());
}

TEST_SUITE_END();

}  // namespace integration::faults_runtime_test
