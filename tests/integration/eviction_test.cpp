#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "testbed/agent.hpp"
#include "testbed/cgroup_host.hpp"
#include "testbed/files.hpp"
#include "testbed/wait.hpp"
#include "victims.hpp"

namespace integration::eviction_test {

using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::v1::Event;
using testbed::Agent;
using testbed::Testbed;

namespace {

std::vector<Event> of_eviction(const std::vector<Event>& events, std::uint64_t id) {
  std::vector<Event> result;
  std::ranges::copy_if(events, std::back_inserter(result),
                       [&](const Event& event) { return event.eviction_id() == id; });
  return result;
}

}  // namespace

TEST_CASE("the growing pod is evicted, long before the timer would look, and only it: its neighbours run on") {
  Testbed testbed{gibi_node};
  const auto chill = testbed.cri().run_pod(pod("chill", QosClass::Burstable, {"hold", "32Mi"}));
  const auto vital = testbed.cri().run_pod(pod("vital", QosClass::Burstable, {"hold", "256Mi"}, 2000000000));
  Agent agent{
      testbed,
      {.thresholds = "evictionHard: {memory.available: 300Mi}", .notifier = "disable: [psi], fallbackInterval: 5m"}};
  const auto bloat = testbed.cri().run_pod(pod("bloat", QosClass::BestEffort, {"grow", "16Mi", "100Mi/s"}));
  agent.events().wait_for(Event::CLEANUP_DONE, "default/bloat", 60s);

  const auto events = agent.events().all();
  for (std::size_t i = 1; i < events.size(); ++i) CHECK(events[i].sequence() == events[i - 1].sequence() + 1);
  const auto intended = std::ranges::find(events, Event::EVICTION_INTENDED, &Event::kind);
  REQUIRE(intended != events.end());
  CHECK(testbed::key(intended->pod()) == "default/bloat");
  // Which of them depends on how much file cache the node holds, and on the version of cgroups.
  const auto source = intended->wake().source();
  CHECK((source == "memcg" || source == "tripwire" || source == "sampler"));
  CHECK(intended->signal() == "memory.available");
  CHECK(intended->eviction_intended().grace_period_seconds() == 0);
  CHECK(intended->eviction_intended().ranking(0).pod().name() == "bloat");
  CHECK(intended->eviction_intended().ranking_size() == 3);

  std::vector<std::string> order;
  for (const auto& event : of_eviction(events, intended->sequence())) {
    CAPTURE(event.message());
    CHECK(event.kind() != Event::EVICTION_FAILED);
    order.push_back(Event::Kind_Name(event.kind()));
  }
  CHECK(std::erase(order, "EXPLAINED") == 1);  // when, depends on what was known before the kill
  std::erase(order, "EVICTION_DELAYED");       // a machine under load: its containerd answers late
  CHECK(fmt::to_string(fmt::join(order, " ")) == "EVICTION_INTENDED CONTAINERS_KILLED MEMORY_RELEASED CLEANUP_DONE");
  CHECK(std::ranges::count(events, Event::EVICTION_INTENDED, &Event::kind) == 1);
  CHECK(std::ranges::find(events, Event::THRESHOLD_CROSSED, &Event::kind) < intended);

  std::vector<std::string> stages;
  const auto status = agent.status();
  for (const auto& stage : status.latencies()) {
    CHECK(stage.signal() == "memory.available");
    CHECK(stage.count() == 1);
    CHECK(stage.sum_us() == stage.max_us());
    CHECK(stage.median_us() <= stage.p90_us());
    CHECK(stage.p90_us() <= stage.max_us());
    stages.push_back(stage.name());
  }
  CHECK(stages == std::vector<std::string>{"decision", "first_kill", "first_release", "cleanup"});
  CHECK(status.latencies(0).max_us() == intended->stages().at("decided"));

  CHECK(nothing_left(testbed, bloat));
  CHECK(testbed.cri().is_running(chill));
  CHECK(testbed.cri().is_running(vital));
}

TEST_CASE("where no kubelet runs an evicted pod's own cgroup is removed from every hierarchy, and no other") {
  Testbed testbed{gibi_node};
  const auto chill = testbed.cri().run_pod(pod("chill", QosClass::BestEffort, {"hold", "32Mi"}));
  Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 300Mi}"}};
  const auto bloat = testbed.cri().run_pod(pod("bloat", QosClass::BestEffort, {"grow", "16Mi", "100Mi/s"}));
  CHECK(std::filesystem::exists(testbed.node().memory_directory(bloat.cgroup)));
  const auto done = agent.events().wait_for(Event::CLEANUP_DONE, "default/bloat", 60s);
  CHECK_FALSE(done.cleanup_done().timed_out());
  for (const auto& root : testbed::cgroup_host().hierarchies) {
    CAPTURE(root.native());
    CHECK_FALSE(std::filesystem::exists(root / bloat.cgroup.substr(1)));
  }
  CHECK(std::filesystem::exists(testbed.node().memory_directory(chill.cgroup)));
  CHECK(testbed.cri().is_running(chill));
}

TEST_CASE("the pods' own share runs short while the node has plenty: the hog goes, whatever its containers request") {
  Testbed testbed{gibi_node};
  // As a kubelet has it that reserves the rest of the node and enforces what is allocatable.
  testbed::write_file(testbed.node().memory_directory(testbed.node().cgroup() + "/kubepods") /
                          (testbed::cgroup_host().v2 ? "memory.max" : "memory.limit_in_bytes"),
                      std::to_string(400 * mebi));
  auto chill = pod("chill", QosClass::Burstable, {"hold", "48Mi"});
  std::map<std::string, std::string> of_hog;
  SUBCASE("by containers") {}
  SUBCASE("as a whole") {
    // What a pod does not ask for as a whole, while it asks for something, it does not ask for at all.
    of_hog["evictd.io/pod-spec"] =
        R"({"resources": {"requests": {"cpu": "10m"}},)"
        R"( "containers": [{"name": "main", "resources": {"requests": {"memory": "1Gi"}}}]})";
    chill.annotations["evictd.io/pod-spec"] =
        R"({"resources": {"requests": {"memory": "96Mi"}}, "containers": [{"name": "main"}]})";
  }
  const auto neighbour = testbed.cri().run_pod(chill);
  const Follower hog{testbed, "hog", 8 * mebi, {"follow", "/control/size"}, of_hog};
  Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 100Mi}"}};
  agent.wait_for_pods(2);
  hog.hold(280 * mebi);

  const auto intended = agent.events().wait_for(Event::EVICTION_INTENDED, "default/hog", 60s);
  CHECK(intended.signal() == "allocatableMemory.available");
  static_cast<void>(agent.events().wait_for(Event::CLEANUP_DONE, "default/hog", 60s));
  CHECK(testbed.cri().is_running(neighbour));
  for (const auto& event : agent.events().all()) {
    if (event.kind() == Event::EVICTION_INTENDED) CHECK(testbed::key(event.pod()) == "default/hog");
    if (event.kind() == Event::THRESHOLD_CROSSED) CHECK(event.signal() == "allocatableMemory.available");
  }
}

TEST_CASE("with the notifier switched off the fallback timer evicts within its interval") {
  Testbed testbed{gibi_node};
  Agent agent{testbed,
              {.thresholds = "evictionHard: {memory.available: 300Mi}",
               .notifier = "disable: [memcg, sampler, psi, files], v2: sampler, fallbackInterval: 2s"}};
  const Follower hog{testbed, "hog"};
  agent.wait_for_pods(1);
  hog.hold(800 * mebi);
  testbed::wait_until("the hog is beyond the threshold", 60s, [&] {
    // The timer may come while it is just beyond.
    return testbed.node().memory_usage() > 740 * mebi || agent.events().has(Event::EVICTION_INTENDED, "default/hog");
  });
  const auto crossed = std::chrono::steady_clock::now();
  const auto intended = agent.events().wait_for(Event::EVICTION_INTENDED, "default/hog", 30s);
  CHECK(std::chrono::steady_clock::now() - crossed < testbed::patient(3s));  // the interval and 1 s
  // A loop that stood still, as on a busy machine, looks at once; then it has said so.
  const auto reactor = agent.status().reactor();
  const bool stood_still = reactor.long_turns() + reactor.standstills() > 0;
  CHECK((intended.wake().source() == "timer" || (intended.wake().source() == "turns" && stood_still)));
}

TEST_CASE("two hundred crossings up and down leave the number of open files as it was") {
  Testbed testbed{gibi_node};
  // A soft threshold whose grace period never ends: crossed, not acted upon.
  Agent agent{testbed,
              {.thresholds = "evictionHard: {}\nevictionSoft: {memory.available: 900Mi}\n"
                             "evictionSoftGracePeriod: {memory.available: 10h}\n"}};
  const Follower swing{testbed, "swing"};
  agent.wait_for_pods(1);
  const auto cross = [&](int times) {
    for (int i = 0; i < times; ++i) {
      swing.hold(160 * mebi);
      testbed::wait_until("the swing is up", 30s, [&] { return testbed.node().memory_usage() > 150 * mebi; });
      swing.hold(16 * mebi);
      testbed::wait_until("the swing is down", 30s, [&] { return testbed.node().memory_usage() < 60 * mebi; });
    }
  };
  const auto memory_source = fmt::format("{} memory.available", testbed::cgroup_host().v2 ? "sampler" : "memcg");
  const auto memory_wakes = [&] {
    std::uint64_t wakes = 0;
    const auto status = agent.status();
    for (const auto& source : status.wake_sources())
      if (source.name().starts_with(memory_source)) wakes += source.wake_ups();
    return wakes;
  };
  // What is open for a moment, when something is read, does not count.
  const auto always_open = [&] {
    auto least = agent.open_files();
    for (const auto end = std::chrono::steady_clock::now() + 2s; std::chrono::steady_clock::now() < end;) {
      std::this_thread::sleep_for(10ms);
      least = std::min(least, agent.open_files());
    }
    return least;
  };
  const auto settled_files = [&] {
    auto files = always_open();
    testbed::wait_until("as many files are open twice in turn", 60s, [&] {
      const auto before = std::exchange(files, always_open());
      return before == files;
    });
    return files;
  };
  cross(5);  // what is opened once is open now
  const auto files = settled_files();
  const auto wakes = memory_wakes();
  // Where everything is slow, each of them takes a second.
  const int times = testbed::patient(1ms) > 1ms ? 20 : 100;
  cross(times);
  // An eventfd that is signalled twice before it is read is one wake-up.
  CHECK(memory_wakes() >= wakes + static_cast<std::uint64_t>(times));
  CHECK(settled_files() == files);
}

TEST_CASE("a soft threshold evicts after its grace period with the right time to stop, and a recovery resets it") {
  Testbed testbed{gibi_node};
  // The hog must be able to shrink within it.
  const auto grace = testbed::patient(4s) > 4s ? 20s : 4s;
  Agent agent{testbed,
              {.thresholds = fmt::format("evictionHard: {{}}\nevictionSoft: {{memory.available: 500Mi}}\n"
                                         "evictionSoftGracePeriod: {{memory.available: {}s}}\n"
                                         "evictionMaxPodGracePeriod: 7\n",
                                         grace.count()),
               .notifier = "disable: [psi, files], fallbackInterval: 5m"}};
  const Follower hog{testbed, "hog"};
  agent.wait_for_pods(1);
  const auto crossings = [&] {
    return std::ranges::count(agent.events().all(), Event::THRESHOLD_CROSSED, &Event::kind);
  };
  hog.hold(700 * mebi);
  testbed::wait_until("the threshold is crossed", 30s, [&] { return crossings() == 1; });
  hog.hold(16 * mebi);
  testbed::wait_until("the hog shrank", 30s, [&] { return testbed.node().memory_usage() < 200 * mebi; });
  std::this_thread::sleep_for(grace + 1s);  // longer than the grace period that began with the first crossing
  CHECK_FALSE(agent.events().has(Event::EVICTION_INTENDED, "default/hog"));

  hog.hold(700 * mebi);
  testbed::wait_until("the threshold is crossed again", 30s, [&] { return crossings() == 2; });
  const auto intended = agent.events().wait_for(Event::EVICTION_INTENDED, "default/hog", 30s);
  const auto events = agent.events().all();
  const auto crossed = std::ranges::find(events.rbegin(), events.rend(), Event::THRESHOLD_CROSSED, &Event::kind);
  // It begins with what that wake-up had read, which is told a moment later.
  CHECK(std::chrono::nanoseconds(intended.monotonic_ns() - crossed->wake().monotonic_ns()) >= grace);
  CHECK(intended.eviction_intended().grace_period_seconds() == 7);
  CHECK(intended.wake().source() == "deadline");
}

TEST_CASE("evictd that starts before containerd evicts once it is there, and again after containerd was killed") {
  auto options = gibi_node;
  options.start_containerd = false;
  Testbed testbed{options};
  Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 300Mi}", .wait_until_ready = false}};
  agent.process().wait_until_says("no container runtime");
  CHECK_FALSE(agent.status().runtime().connected());

  testbed.containerd().start();
  const Follower first{testbed, "first"};
  agent.wait_for_pods(1);
  first.hold(800 * mebi);
  agent.events().wait_for(Event::CLEANUP_DONE, "default/first", 60s);
  CHECK(nothing_left(testbed, first.running));
  agent.wait_for_pods(0);  // or it would be taken for the second one below

  testbed.containerd().kill9();
  testbed::wait_until("evictd notices", 30s, [&] { return !agent.status().runtime().connected(); });
  testbed.containerd().start();
  const Follower second{testbed, "second"};
  agent.wait_for_pods(1);
  second.hold(800 * mebi);
  agent.events().wait_for(Event::CLEANUP_DONE, "default/second", 60s);
  CHECK(nothing_left(testbed, second.running));
}

}  // namespace integration::eviction_test
