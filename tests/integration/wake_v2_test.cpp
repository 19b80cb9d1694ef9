// The wake sources that only cgroup v2 has.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/xattr.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <limits>

#include "stopped.hpp"
#include "testbed/agent.hpp"
#include "testbed/cgroup_host.hpp"
#include "testbed/files.hpp"
#include "testbed/programs.hpp"
#include "testbed/wait.hpp"

namespace integration::wake_v2_test {

using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::v1::Event;
using testbed::Agent;
using testbed::Testbed;

namespace {

constexpr auto patience = 120s;  // an emulated processor is slow
constexpr std::int64_t mebi = 1 << 20;
constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();  // "max"
const auto small_node = Testbed::Options{.node = {.memory_limit = 256 * mebi}};
constexpr auto thresholds = "evictionHard: {memory.available: 100Mi}";

// Every source off but those of a test, so that the one named in an event is the one meant.
constexpr auto only_psi =
    "disable: [memcg, sampler, files], v2: sampler, fallbackInterval: 5m, psiSome: 10ms, psiFull: 10ms";
constexpr auto only_events = "disable: [memcg, sampler, files, psi], v2: sampler, fallbackInterval: 5m";
constexpr auto only_fence = "disable: [memcg, sampler, files, psi], fallbackInterval: 5m, v2: fence";
constexpr auto only_tripwire = "disable: [memcg, sampler, files, psi], fallbackInterval: 5m";

bool on_v1() {
  const auto host = testbed::find_cgroup_host();
  return !host || !host->v2;
}

std::filesystem::path pods_directory(Testbed& testbed) { return testbed.node().memory_directory() / "kubepods"; }

/// memory.high of the pods; `none` while there is no fence.
std::int64_t high(Testbed& testbed) { return testbed::read_number(pods_directory(testbed) / "memory.high"); }

bool marked(Testbed& testbed) {
  return ::getxattr(pods_directory(testbed).c_str(), "user.evictd.fence", nullptr, 0) >= 0;
}

evictd::v1::WakeSource source(const Agent& agent, std::string_view name) {
  const auto status = agent.status();
  const auto& sources = status.wake_sources();
  const auto found = std::ranges::find_if(sources, [&](const auto& each) { return each.name() == name; });
  REQUIRE_MESSAGE(found != sources.end(), "there is no source " << name);
  return *found;
}

std::string pods(Testbed& testbed) { return testbed.node().cgroup() + "/kubepods"; }

void wait_for_fence(Testbed& testbed) {
  testbed::wait_until("the fence stands", patience, [&] { return high(testbed) != none; });
}

testbed::PodSpec pod(std::string name, std::vector<std::string> load) {
  return {.name = std::move(name), .qos = QosClass::BestEffort, .containers = {{.args = std::move(load)}}};
}

/// A pod whose memory follows a number written to a file.
struct Hog {
  std::filesystem::path directory;
  testbed::RunningPod running;

  explicit Hog(Testbed& testbed) : directory{testbed.directory() / "hog"} {
    std::filesystem::create_directory(directory);
    hold(8 * mebi);
    auto spec = pod("hog", {"follow", "/control/size"});
    spec.containers[0].mounts.push_back({.host_path = directory, .container_path = "/control"});
    running = testbed.cri().run_pod(spec);
  }
  void hold(std::int64_t bytes) const { testbed::replace_file(directory / "size", std::to_string(bytes)); }
};

std::string disarm(Testbed& testbed) {
  return testbed::run({testbed::evictd_program(), "disarm", "--config", testbed.directory() / "agent.yaml",
                       "--kubelet-config", testbed.directory() / "kubelet.yaml"});
}

}  // namespace

TEST_SUITE_BEGIN("cgroup v2" * doctest::skip(on_v1()));

TEST_CASE("a stall starts the pass that evicts: what was crossed unseen is seen") {
  Testbed testbed{small_node};
  const Hog hog{testbed};
  Agent agent{testbed, {.thresholds = thresholds, .notifier = only_psi}};
  agent.wait_for_pods(1);
  for (const auto& name : {testbed.node().cgroup(), pods(testbed)})
    CHECK(source(agent, "psi " + name).state().starts_with("armed"));

  // It stalls when it is well beyond the threshold: the kernel holds it at a limit of its own.
  testbed::write_file(testbed.node().memory_directory(hog.running.cgroup) / "memory.high", std::to_string(180 * mebi));
  hog.hold(190 * mebi);
  const auto intended = agent.events().wait_for(Event::EVICTION_INTENDED, "default/hog", patience);
  CHECK(intended.wake().source() == "psi");
  agent.events().wait_for(Event::CLEANUP_DONE, "default/hog", patience);
}

TEST_CASE("the fence holds the pods at the threshold and wakes the pass, is lifted for the victim, and comes back") {
  Testbed testbed{small_node};
  const Hog hog{testbed};
  Agent agent{testbed, {.thresholds = thresholds, .notifier = only_fence}};
  agent.wait_for_pods(1);
  wait_for_fence(testbed);
  const auto fence = "fence " + pods(testbed);
  CHECK(source(agent, fence).state() == "armed");
  CHECK(marked(testbed));

  const auto level = high(testbed);
  const auto distance = level - testbed.node().memory_usage(pods(testbed));
  hog.hold(8 * mebi + distance + 8 * mebi);
  testbed::wait_until("the fence is lifted", patience, [&] { return high(testbed) == none; });
  const auto intended = agent.events().wait_for(Event::EVICTION_INTENDED, "default/hog", patience);
  CHECK(intended.wake().source() == "fence");
  CHECK(intended.signal() == "memory.available");
  agent.events().wait_for(Event::CLEANUP_DONE, "default/hog", patience);
  wait_for_fence(testbed);
  CHECK(std::abs(high(testbed) - level) < 16 * mebi);
  CHECK(source(agent, fence).wake_ups() >= 1);
}

TEST_CASE("the fence comes back once the memory is, however long the cleanup takes") {
  Testbed testbed{small_node};
  const Hog hog{testbed};
  Agent agent{testbed, {.thresholds = thresholds, .notifier = only_fence}};
  agent.wait_for_pods(1);
  wait_for_fence(testbed);
  const auto distance = high(testbed) - testbed.node().memory_usage(pods(testbed));
  {
    const integration::Stopped containerd{testbed.containerd().pid()};  // no cleanup ends while it is
    hog.hold(8 * mebi + distance + 8 * mebi);
    agent.events().wait_for(Event::MEMORY_RELEASED, "default/hog", patience);
    wait_for_fence(testbed);
    CHECK_FALSE(agent.events().has(Event::CLEANUP_DONE, "default/hog"));
  }
  agent.events().wait_for(Event::CLEANUP_DONE, "default/hog", patience);
}

TEST_CASE("the fence follows the memory that others than pods use") {
  Testbed testbed{small_node};
  Agent agent{testbed, {.thresholds = thresholds, .notifier = only_fence}};
  wait_for_fence(testbed);
  const auto before = high(testbed);
  const auto other = testbed.node().memory_directory() / "other";
  std::filesystem::create_directory(other);
  auto daemon = testbed.spawn({"sh", "-c", "echo $$ >" + (other / "cgroup.procs").native() + "; exec \"$@\"", "-",
                               testbed::load_program(), "hold", "40Mi"});
  testbed::wait_until("the fence came down by as much", patience,
                      [&] { return before - high(testbed) > 38 * mebi && before - high(testbed) < 44 * mebi; });
  daemon.kill();
  testbed::wait_until("and is back", patience, [&] { return std::abs(before - high(testbed)) < 4 * mebi; });
}

TEST_CASE("the fence goes however evictd ends: by SIGTERM, or killed, by disarm and by the next start") {
  Testbed testbed{small_node};
  const auto lifted = [&] { return high(testbed) == none && !marked(testbed); };
  const Agent::Options fenced{.thresholds = thresholds, .notifier = only_fence};
  {
    Agent agent{testbed, fenced};
    wait_for_fence(testbed);
    agent.process().signal(SIGTERM);
    CHECK(agent.process().wait(patience) == 0);
    CHECK(lifted());
    CHECK(disarm(testbed) == pods(testbed) + " has no fence\n");
  }
  const auto kill_one = [&] {
    Agent agent{testbed, fenced};
    wait_for_fence(testbed);
    agent.process().kill();
    REQUIRE(high(testbed) != none);
    REQUIRE(marked(testbed));
  };
  kill_one();
  CHECK(disarm(testbed).starts_with("lifted the fence of " + pods(testbed)));
  CHECK(lifted());

  kill_one();
  {
    const Agent agent{testbed, {.thresholds = thresholds, .notifier = only_events}};
    CHECK(lifted());
  }
  kill_one();
  {
    const Agent dry{testbed, {.thresholds = thresholds, .notifier = only_fence, .arguments = {"--dry-run"}}};
    CHECK(high(testbed) != none);  // may be another evictd's
  }
  Agent agent{testbed, fenced};
  wait_for_fence(testbed);
  testbed::wait_until("the fence is its own again", patience,
                      [&] { return source(agent, "fence " + pods(testbed)).state() == "armed"; });
  agent.process().signal(SIGTERM);
  CHECK(agent.process().wait(patience) == 0);
  CHECK(lifted());
}

TEST_CASE("a memory.high that someone else sets is theirs: before the start, while evictd runs, and after it") {
  Testbed testbed{small_node};
  const auto set = [&](const std::string& value) {
    testbed::write_file(pods_directory(testbed) / "memory.high", value);
  };
  set(std::to_string(200 * mebi));
  Agent agent{testbed, {.thresholds = thresholds, .notifier = only_fence}};
  const auto fence = "fence " + pods(testbed);
  const auto state = [&] { return source(agent, fence).state(); };
  const auto off = fmt::format("off: memory.high of {} is {}, set by someone else", pods(testbed), 200 * mebi);
  testbed::wait_until("it stands aside", patience, [&] { return state() == off; });
  CHECK(high(testbed) == 200 * mebi);

  set("max");
  wait_for_fence(testbed);
  testbed::wait_until("the fence is armed", patience, [&] { return state() == "armed"; });
  CHECK(marked(testbed));

  set(std::to_string(200 * mebi));
  testbed::wait_until("it stands aside again", patience, [&] { return state() == off; });
  CHECK_FALSE(marked(testbed));
  agent.process().signal(SIGTERM);
  CHECK(agent.process().wait(patience) == 0);
  CHECK(disarm(testbed).ends_with("set by someone else: left as it is\n"));
  CHECK(high(testbed) == 200 * mebi);
}

TEST_CASE("the tripwire wakes the pass at the threshold, is lifted for the victim, and is set again") {
  Testbed testbed{small_node};
  const Hog hog{testbed};
  Agent agent{testbed, {.thresholds = thresholds, .notifier = only_tripwire}};
  agent.wait_for_pods(1);
  wait_for_fence(testbed);
  const auto tripwire = "tripwire " + pods(testbed);
  CHECK(source(agent, tripwire).state() == "armed");
  CHECK(marked(testbed));

  const auto level = high(testbed);
  const auto distance = level - testbed.node().memory_usage(pods(testbed));
  hog.hold(8 * mebi + distance + 8 * mebi);
  const auto intended = agent.events().wait_for(Event::EVICTION_INTENDED, "default/hog", patience);
  CHECK(intended.wake().source() == "tripwire");
  CHECK(intended.signal() == "memory.available");
  agent.events().wait_for(Event::CLEANUP_DONE, "default/hog", patience);
  wait_for_fence(testbed);
  CHECK(std::abs(high(testbed) - level) < 16 * mebi);
  CHECK(source(agent, tripwire).wake_ups() >= 1);
  CHECK(source(agent, tripwire).spurious() == 0);
}

TEST_CASE("file cache evicts nobody, whether it trips the tripwire or is followed, and the tripwire is set beyond it") {
  // With room for the cache: a node's programs may bring 200 MiB of their own files with them.
  Testbed testbed{{.node = {.memory_limit = 1024 * mebi}}};
  Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 868Mi}", .notifier = only_tripwire}};
  wait_for_fence(testbed);
  const auto tripwire = "tripwire " + pods(testbed);
  const auto before = high(testbed);
  const auto distance = before - testbed.node().memory_usage(pods(testbed));
  const auto size = distance + 16 * mebi;
  const auto directory = testbed.directory() / "archive";
  std::filesystem::create_directory(directory);
  auto spec = pod("archive", {"write", "/archive", std::to_string(size), "500Mi/s"});
  spec.containers[0].mounts.push_back({.host_path = directory, .container_path = "/archive"});
  static_cast<void>(testbed.cri().run_pod(spec));

  testbed::wait_until("the archive is written", patience, [&] {
    std::error_code error;
    return std::filesystem::file_size(directory / "load.data", error) == static_cast<std::uintmax_t>(size);
  });
  testbed::wait_until("it stands beyond the archive", patience, [&] {
    return high(testbed) != none && high(testbed) > before + size / 2 && source(agent, tripwire).state() == "armed";
  });
  CHECK_FALSE(agent.events().has(Event::EVICTION_INTENDED, "default/archive"));
}

TEST_CASE("the tripwire goes however evictd ends: by SIGTERM, or killed, by disarm and by the next start") {
  Testbed testbed{small_node};
  const auto lifted = [&] { return high(testbed) == none && !marked(testbed); };
  const Agent::Options with_tripwire{.thresholds = thresholds, .notifier = only_tripwire};
  {
    Agent agent{testbed, with_tripwire};
    wait_for_fence(testbed);
    agent.process().signal(SIGTERM);
    CHECK(agent.process().wait(patience) == 0);
    CHECK(lifted());
  }
  const auto kill_one = [&] {
    Agent agent{testbed, with_tripwire};
    wait_for_fence(testbed);
    agent.process().kill();
    REQUIRE(high(testbed) != none);
    REQUIRE(marked(testbed));
  };
  kill_one();
  CHECK(disarm(testbed).starts_with("lifted the fence of " + pods(testbed)));
  CHECK(lifted());

  kill_one();
  const Agent agent{testbed, {.thresholds = thresholds, .notifier = only_events}};
  CHECK(lifted());
}

TEST_CASE("the tripwire stands aside where someone else has set memory.high, and says so") {
  Testbed testbed{small_node};
  testbed::write_file(pods_directory(testbed) / "memory.high", std::to_string(200 * mebi));
  Agent agent{testbed, {.thresholds = thresholds, .notifier = only_tripwire}};
  const auto off = fmt::format("off: memory.high of {} is {}, set by someone else", pods(testbed), 200 * mebi);
  testbed::wait_until("it stands aside", patience,
                      [&] { return source(agent, "tripwire " + pods(testbed)).state() == off; });
  CHECK(high(testbed) == 200 * mebi);
  CHECK_FALSE(marked(testbed));
}

TEST_CASE("a container killed at its own limit starts a pass, which evicts nobody") {
  Testbed testbed{small_node};
  Agent agent{testbed, {.thresholds = thresholds, .notifier = only_events}};
  const auto events = "memory.events " + pods(testbed);
  testbed::wait_until("its counters are watched", patience, [&] { return source(agent, events).state() == "armed"; });
  auto spec = pod("bloat", {"grow", "8Mi", "100Mi/s", "64Mi"});
  spec.containers[0].memory_limit = 32 * mebi;
  const auto bloat = testbed.cri().run_pod(spec);
  testbed::wait_until("the kernel kills it", patience, [&] { return !testbed.cri().is_running(bloat); });
  testbed::wait_until("evictd sees that", patience, [&] {
    return source(agent, events).wake_ups() > 0 &&
           source(agent, events).detail().find("oom_kill 0") == std::string::npos;
  });
  const auto passes = agent.status().passes();
  CHECK(passes > 1);
  CHECK(source(agent, "memory.events " + testbed.node().cgroup()).wake_ups() > 0);
  CHECK_FALSE(agent.events().has(Event::EVICTION_INTENDED, "default/bloat"));
  CHECK(agent.status().evictions() == 0);
}

TEST_SUITE_END();

}  // namespace integration::wake_v2_test
