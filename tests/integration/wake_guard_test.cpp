// What wakes evictd is watched itself: the kernel's word, and the loop that hears it.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>

#include "fixture/real_cgroup.hpp"
#include "testbed/agent.hpp"
#include "testbed/files.hpp"
#include "testbed/programs.hpp"
#include "testbed/wait.hpp"

namespace integration::wake_guard_test {

using namespace std::chrono_literals;
using evictd::v1::Event;
using testbed::Agent;
using testbed::Testbed;

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t mebi = 1 << 20;
const Testbed::Options without_runtime{.node = {.memory_limit = 1024 * mebi}, .start_containerd = false};

evictd::v1::WakeSource source(const Agent& agent, std::string_view prefix) {
  const auto status = agent.status();
  const auto found =
      std::ranges::find_if(status.wake_sources(), [&](const auto& each) { return each.name().starts_with(prefix); });
  REQUIRE(found != status.wake_sources().end());
  return *found;
}

bool has_event(Agent& agent, std::string_view source, std::string_view state) {
  const auto events = agent.events().all();
  return std::ranges::any_of(events, [&](const Event& event) {
    return event.kind() == Event::SOURCE_DEGRADED && event.source_degraded().source() == source &&
           event.source_degraded().state().starts_with(state);
  });
}

/// The eventfds that a process's reactor waits for, but for the one by which it wakes itself: its first.
struct Ears {
  int epoll = -1;
  std::vector<int> eventfds;

  explicit Ears(pid_t pid) {
    const auto proc = fs::path("/proc") / std::to_string(pid);
    const auto is = [&](const std::string& descriptor, const char* kind) {
      std::error_code gone;
      return fs::read_symlink(proc / "fd" / descriptor, gone) == fmt::format("anon_inode:[{}]", kind);
    };
    for (const auto& entry : fs::directory_iterator(proc / "fd")) {
      const auto name = entry.path().filename().string();
      if (!is(name, "eventpoll")) continue;
      std::map<long, int> by_age;
      bool is_asio = false;  // gRPC's have no timer
      std::ifstream info(proc / "fdinfo" / name);
      for (std::string word; info >> word;) {
        if (word != "tfd:") continue;
        info >> word;
        is_asio = is_asio || is(word, "timerfd");
        if (is(word, "eventfd")) by_age[eventfd_id(proc / "fdinfo" / word)] = std::stoi(word);
      }
      // Reactors of other threads have none but their own.
      if (!is_asio || by_age.size() < 2) continue;
      epoll = std::stoi(name);
      by_age.erase(by_age.begin());
      for (const auto& [id, descriptor] : by_age) eventfds.push_back(descriptor);
    }
  }
  static long eventfd_id(const fs::path& info) {
    std::ifstream file(info);
    long id = -1;
    for (std::string word; file >> word;)
      if (word == "eventfd-id:") file >> id;
    return id;
  }
};

/// The process's reactor hears none of them any more; nothing else about it changes. epoll knows what it waits for by
/// file and number, so a child of ours takes both.
void deafen(pid_t pid) {
  const Ears ears{pid};
  REQUIRE(ears.epoll >= 0);
  REQUIRE_FALSE(ears.eventfds.empty());
  evictd::fixture::in_child([&] {
    constexpr int beyond_all = 900;
    const auto take = [&, process = ::fcntl(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)), F_DUPFD, beyond_all)](
                          int theirs, int ours) {
      const int copy = static_cast<int>(::syscall(SYS_pidfd_getfd, process, theirs, 0));
      if (copy < 0) throw std::runtime_error("pidfd_getfd");
      return ours < 0 ? ::fcntl(copy, F_DUPFD, beyond_all) : ::dup2(copy, ours);
    };
    const int epoll = take(ears.epoll, -1);
    for (const int event : ears.eventfds)
      if (take(event, event) != event || ::epoll_ctl(epoll, EPOLL_CTL_DEL, event, nullptr) != 0)
        throw std::runtime_error("epoll_ctl");
  });
}

}  // namespace

TEST_SUITE_BEGIN("cgroup v1");

TEST_CASE("notifiers that stopped firing are noticed by a self-test, registered anew and counted, and fire again") {
  Testbed testbed{{.node = {.memory_limit = 1024 * mebi}}};
  Agent agent{testbed,
              {.thresholds = "evictionHard: {memory.available: 300Mi}",
               .notifier = "disable: [sampler, psi, files], fallbackInterval: 5m, selfTestInterval: 1s"}};
  const auto control = testbed.directory() / "control";
  fs::create_directory(control);
  testbed::replace_file(control / "size", "8Mi");
  testbed::PodSpec hog{.name = "hog", .containers = {{.args = {"follow", "/control/size"}}}};
  hog.containers[0].mounts.push_back({.host_path = control, .container_path = "/control"});
  (void)testbed.cri().run_pod(hog);
  agent.wait_for_pods(1);
  testbed::wait_until("the first test passed", 60s,
                      [&] { return source(agent, "self-test").detail().find("; 0 passed") == std::string::npos; });
  CHECK(source(agent, "self-test").missed() == 0);

  deafen(agent.process().pid());
  testbed::wait_until("the self-test has noticed", 60s, [&] { return source(agent, "self-test").missed() >= 1; });
  testbed::wait_until("all are registered anew", 30s, [&] {
    return std::ranges::all_of(std::array{"self-test", "memcg memory.available", "oom "},
                               [&](const char* each) { return source(agent, each).re_registrations() >= 1; });
  });
  for (const char* each : {"self-test", "memcg", "oom"})
    testbed::wait_until(fmt::format("{} says so", each), 30s, [&] {
      return has_event(agent, each, "recovered: registered with the kernel anew: a self-test failed");
    });
  CHECK(source(agent, "self-test").state() == "armed");

  testbed::replace_file(control / "size", "800Mi");
  const auto intended = agent.events().wait_for(Event::EVICTION_INTENDED, "default/hog", 60s);
  CHECK(intended.wake().source() == "memcg");
}

TEST_CASE("a probe that somebody removes is made and registered anew; it goes with evictd") {
  Testbed testbed{without_runtime};
  Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 100Mi}", .wait_until_ready = false}};
  const auto probe = testbed.node().memory_directory() / "evictd-probe";
  testbed::wait_until("the probe is there", 30s, [&] { return fs::exists(probe); });
  testbed::wait_until("the first pass", 30s, [&] { return agent.status().passes() > 0; });
  REQUIRE(::rmdir(probe.c_str()) == 0);
  testbed::wait_until("it is registered anew", 30s, [&] { return source(agent, "self-test").re_registrations() == 1; });
  CHECK(fs::exists(probe));
  CHECK(agent.status().pods() == 0);
  agent.process().signal(SIGTERM);
  CHECK(agent.process().wait(30s) == 0);
  CHECK_FALSE(fs::exists(probe));
}

TEST_SUITE_END();

TEST_CASE("an evictd that was stopped for a while knows that it stood still, and looks at the node") {
  Testbed testbed{without_runtime};
  Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 100Mi}", .wait_until_ready = false}};
  testbed::wait_until("the first pass", 30s, [&] { return agent.status().passes() > 0; });
  const auto before = source(agent, "turns").wake_ups();
  agent.process().signal(SIGSTOP);
  std::this_thread::sleep_for(6s);
  agent.process().signal(SIGCONT);
  testbed::wait_until("it says so", 30s, [&] {
    const auto longest = agent.status().reactor().longest_standstill();
    return longest.seconds() * 1000 + longest.nanos() / 1'000'000 >= 1400;  // its thread sleeps for up to 4 s
  });
  CHECK(agent.status().reactor().standstills() >= 1);
  CHECK(source(agent, "turns").wake_ups() > before);
  testbed::wait_until("an event says so", 30s,
                      [&] { return has_event(agent, "turns", "recovered: evictd stood still for "); });
}

TEST_CASE("a turn that takes long is counted and said") {
  Testbed testbed{without_runtime};
  Agent agent{testbed,
              {.thresholds = "evictionHard: {memory.available: 100Mi}",
               .environment = {"EVICTD_CRASH_AT=pass", "EVICTD_CRASH_BY=wait"},
               .program = testbed::crashing_evictd(),
               .wait_until_ready = false}};
  testbed::wait_until("the turn is counted", 30s, [&] { return agent.status().reactor().long_turns() > 0; });
  testbed::wait_until("it is said", 30s,
                      [&] { return has_event(agent, "turns", "recovered: a turn of the loop (a pass)"); });
}

}  // namespace integration::wake_guard_test
