#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>

#include "cri/fake_runtime.hpp"
#include "history.hpp"
#include "testbed/agent.hpp"
#include "testbed/files.hpp"
#include "testbed/process.hpp"
#include "testbed/programs.hpp"
#include "testbed/wait.hpp"

namespace integration::brand_new_test {

using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::v1::Event;
using testbed::Agent;
using testbed::Testbed;

namespace {

constexpr std::int64_t mebi = 1 << 20;

/// A process in a pod's container, by cgroups of the kubelet's names, of which no runtime knows.
testbed::Process run_unlisted(const testbed::NodeCgroup& node, std::string_view uid, const std::string& load) {
  const auto container = node.pod_cgroup(QosClass::BestEffort, uid) + '/' + std::string(uid);
  const auto directory = node.memory_directory(container);
  std::filesystem::create_directories(directory);
  // On v2 each level hands the controllers down.
  for (auto above = node.memory_directory(); above != directory;) {
    const auto control = above / "cgroup.subtree_control";
    if (std::filesystem::exists(control)) std::ofstream{control} << "+memory +pids";
    const auto rest = directory.lexically_relative(above);
    above /= *rest.begin();
  }
  const auto script = fmt::format("echo $$ > {}/cgroup.procs && exec {} {}", directory.native(),
                                  testbed::load_program().native(), load);
  return testbed::Process{{"sh", "-c", script}};
}

}  // namespace

TEST_CASE("a brand-new pod that hogs at once is evicted before it was ever listed") {
  Testbed testbed{{.node = {.memory_limit = 1024 * mebi}}};
  const auto calm =
      testbed.cri().run_pod({.name = "calm", .qos = QosClass::BestEffort, .containers = {{.args = {"hold", "32Mi"}}}});
  Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 300Mi}"}};
  agent.wait_for_pods(1);

  const std::string uid = "11111111-2222-3333-4444-555555555555";
  auto hog = run_unlisted(testbed.node(), uid, "grow 16Mi 400Mi/s");
  const auto done = agent.events().wait_for(Event::CLEANUP_DONE, "unlisted/" + uid, 60s);
  CHECK(done.signal() == "memory.available");
  const auto killed = agent.events().wait_for(Event::CONTAINERS_KILLED, "unlisted/" + uid, 1s);
  CHECK(killed.containers_killed().method() != "StopContainer");
  CHECK(hog.wait(30s) == 128 + SIGKILL);
  CHECK(testbed.cri().is_running(calm));
}

TEST_CASE("an evicted pod that is started again is a pod like any other, and goes by a decision of its own") {
  Testbed testbed{{.node = {.memory_limit = 1024 * mebi}}};
  Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 300Mi}"}};
  std::uint32_t attempts = 0;
  const auto run = [&](const std::string& name, std::vector<std::string> load) {
    return testbed.cri().run_pod({.name = name,
                                  .uid = name + "-1",
                                  .attempt = attempts++,
                                  .qos = QosClass::BestEffort,
                                  .containers = {{.args = std::move(load)}}});
  };
  run("back", {"grow", "16Mi", "400Mi/s"});
  agent.events().wait_for(Event::CLEANUP_DONE, "default/back", 60s);

  // The node is well: it stays, also when another pod has to go.
  const auto calm = run("back", {"hold", "8Mi"});
  testbed::wait_until("it is listed", 30s, [&] { return agent.is_listed("back-1"); });
  run("other", {"grow", "16Mi", "400Mi/s"});
  agent.events().wait_for(Event::CLEANUP_DONE, "default/other", 60s);
  CHECK(testbed.cri().is_running(calm));
  CHECK(std::ranges::count(agent.events().all(), Event::EVICTION_INTENDED, &Event::kind) == 2);

  // And when it hogs it goes, with all that belongs to an eviction.
  testbed.cri().remove(calm);
  run("back", {"grow", "16Mi", "400Mi/s"});
  testbed::wait_until("the second eviction's end", 60s, [&] {
    return integration::count(agent.events().all(), Event::CLEANUP_DONE, "default/back") == 2;
  });
  const auto events = agent.events().all();
  std::set<std::uint64_t> evictions;
  for (const auto& event : events)
    if (event.kind() == Event::CLEANUP_DONE) evictions.insert(event.eviction_id());
  CHECK(evictions.size() == 3);  // the other pod's among them
  for (const auto kind :
       {Event::EVICTION_INTENDED, Event::CONTAINERS_KILLED, Event::MEMORY_RELEASED, Event::CLEANUP_DONE})
    CHECK(integration::count(events, kind, "default/back") == 2);
}

TEST_CASE("a list of pods that was asked for during an eviction does not make the evicted pod one that runs again") {
  Testbed testbed{{.node = {.memory_limit = 1024 * mebi}, .start_containerd = false}};
  evictd::test::FakeRuntime runtime{testbed.containerd().socket()};
  runtime.start();
  const auto size = testbed.directory() / "size";
  testbed::replace_file(size, "8Mi");
  const auto hog = run_unlisted(testbed.node(), "hog", "follow " + size.native());
  runtime.put_pod("hog", testbed.node().pod_cgroup(QosClass::BestEffort, "hog"));
  Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 300Mi}"}};
  agent.wait_for_pods(1);

  // The runtime has said that the hog runs, and takes its time to tell of another pod.
  std::atomic<bool> asked = false;
  std::atomic<bool> cleaned_up = false;
  runtime.meanwhile("ContainerStatus", [&] {
    asked = true;
    CHECK(testbed::comes_true(30s, [&] { return cleaned_up.load(); }));
  });
  runtime.put_pod("newcomer", testbed.node().pod_cgroup(QosClass::BestEffort, "newcomer"));
  const auto newcomer = run_unlisted(testbed.node(), "newcomer", "hold 8Mi");
  testbed::wait_until("the newcomer is asked for", 30s, [&] { return asked.load(); });
  testbed::replace_file(size, "800Mi");
  agent.events().wait_for(Event::CLEANUP_DONE, "default/hog", 60s);
  const auto lists = runtime.calls("ListPodSandbox");
  cleaned_up = true;
  // The next list is asked for once the earlier one was taken in.
  testbed::wait_until("the newcomer alone is listed", 60s, [&] {
    const auto status = agent.status();
    return runtime.calls("ListPodSandbox") > lists && status.pods() == 1 && status.in_flight().empty();
  });

  const auto events = integration::history(agent);
  for (const auto kind :
       {Event::EVICTION_INTENDED, Event::CONTAINERS_KILLED, Event::MEMORY_RELEASED, Event::CLEANUP_DONE})
    CHECK(integration::count(events, kind, "default/hog") == 1);
}

TEST_CASE("a pod whose statuses the runtime does not tell in time is ranked by its cgroup, not before all others") {
  Testbed testbed{{.node = {.memory_limit = 1024 * mebi}, .start_containerd = false}};
  evictd::test::FakeRuntime runtime{testbed.containerd().socket()};
  runtime.start();
  const auto size = testbed.directory() / "size";
  testbed::replace_file(size, "8Mi");
  auto hog = run_unlisted(testbed.node(), "hog", "follow " + size.native());
  runtime.put_pod("hog", testbed.node().pod_cgroup(QosClass::BestEffort, "hog"));
  Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 300Mi}"}};
  agent.wait_for_pods(1);

  constexpr int deadline_exceeded = 4;
  for (const auto* method : {"PodSandboxStatus", "ContainerStatus"}) runtime.fail(method, deadline_exceeded);
  const auto newcomer = run_unlisted(testbed.node(), "newcomer", "hold 16Mi");
  runtime.put_pod("newcomer", testbed.node().pod_cgroup(QosClass::BestEffort, "newcomer"));
  agent.wait_for_pods(2);
  testbed::wait_until("the newcomer is known by its name", 30s, [&] { return agent.is_listed("newcomer"); });
  testbed::replace_file(size, "800Mi");
  CHECK(hog.wait(60s) == 128 + SIGKILL);
  const auto events = integration::history(agent);
  CHECK(integration::count(events, Event::EVICTION_INTENDED, "default/hog") == 1);
  CHECK(std::ranges::count(events, Event::EVICTION_INTENDED, &Event::kind) == 1);
}

}  // namespace integration::brand_new_test
