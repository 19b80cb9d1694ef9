#include "evict/kill.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <deque>
#include <set>
#include <thread>

#include "evict/reaper.hpp"
#include "fixture/random.hpp"
#include "fixture/real_cgroup.hpp"
#include "fixture/result.hpp"
#include "node/cgroup_processes.hpp"

namespace evictd::evict {
namespace {

using namespace std::chrono_literals;
using fixture::error_of;
using fixture::own_cgroup;
using fixture::Random;
using fixture::RealCgroup;
using fixture::Sleeper;
using fixture::value_of;

const IsProtected nobody = [](pid_t) { return false; };

std::string number(std::string_view prefix, std::size_t i) { return std::string(prefix) + std::to_string(i); }

/// Pods with containers, each container with some processes.
struct Pods {
  RealCgroup root{own_cgroup()};
  std::deque<RealCgroup> cgroups{};
  std::vector<std::string> pods{};
  std::deque<std::pair<std::string, Sleeper>> processes{};  // by pod

  explicit Pods(Random& random) {
    for (auto pod = random.between(2, 4); pod > 0; --pod) {
      const auto path = own_cgroup(number("/pod", pods.size()));
      pods.push_back(path);
      cgroups.emplace_back(path);
      for (auto container = random.between(1, 3); container > 0; --container) {
        cgroups.emplace_back(path + number("/c", static_cast<std::size_t>(container)));
        for (auto left = random.between(0, 4); left > 0; --left) {
          auto& process = processes.emplace_back(std::piecewise_construct, std::tuple{path}, std::tuple{});
          cgroups.back().put(process.second.pid());
        }
      }
    }
  }
  ~Pods() {
    processes.clear();  // before their cgroups
    while (!cgroups.empty()) cgroups.pop_back();
  }
};

/// Dead within a while. It is nobody's zombie to reap but ours.
bool dies(pid_t pid) {
  for (int i = 0; i < 2000; ++i) {
    siginfo_t info{};
    if (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid)
      return info.si_status == SIGKILL;
    std::this_thread::sleep_for(1ms);
  }
  return false;
}

bool lives(pid_t pid) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}

}  // namespace

TEST_SUITE_BEGIN("real cgroups");

TEST_CASE("property: all processes of the pod are killed, and none of any other, of evictd or of who is protected") {
  if (fixture::no_real_cgroups()) return;
  const auto hierarchy = fixture::real_hierarchy();
  for (const auto seed : fixture::seeds(12)) {
    CAPTURE(seed);
    Random random{seed};
    Pods node{random};
    const auto victim = node.pods[static_cast<std::size_t>(random.between(0, std::ssize(node.pods) - 1))];
    std::set<pid_t> spared{::getpid()};
    for (const auto& [pod, process] : node.processes)
      if (pod == victim && random.chance(20)) spared.insert(process.pid());
    const auto kill = value_of(
        kill_cgroups(hierarchy, own_cgroup(), std::array{victim}, [&](pid_t pid) { return spared.contains(pid); }));
    std::size_t killed = 0;
    for (const auto& [pod, process] : node.processes) {
      const bool hit = pod == victim && !spared.contains(process.pid());
      CHECK((hit ? dies(process.pid()) : lives(process.pid())));
      killed += hit ? 1 : 0;
    }
    CHECK(kill.processes.size() == killed);
    CHECK(kill.first.has_value() == (killed > 0));
  }
}

TEST_CASE("a victim that forks without end is emptied completely") {
  if (fixture::no_real_cgroups()) return;
  const auto hierarchy = fixture::real_hierarchy();
  const RealCgroup pods{own_cgroup()};
  const RealCgroup pod{own_cgroup("/pod")};
  const RealCgroup container{own_cgroup("/pod/container")};
  container.limit_pids(60);
  const Sleeper outside;
  const auto bomb = ::fork();
  if (bomb == 0) {
    // Until it is in its cgroup it must not multiply.
    for (;;) {
      const auto listed = node::processes(hierarchy, container.path());
      if (listed && !listed->empty()) break;
      std::this_thread::sleep_for(1ms);
    }
    // Every child forks on, up to the limit of the cgroup. A small program: a copy of this one, with a sanitizer in it,
    // is a bomb for the whole machine.
    ::execlp("perl", "perl", "-e", "$SIG{CHLD} = 'IGNORE'; fork while 1", nullptr);
    ::_exit(127);
  }
  REQUIRE(bomb > 0);
  container.put(bomb);
  const auto count = [&] { return value_of(node::processes(hierarchy, pod.path())).size(); };
  for (int i = 0; i < 5000 && count() < 40; ++i) std::this_thread::sleep_for(1ms);
  REQUIRE(count() >= 40);
  bool empty = false;
  for (int i = 0; i < 200 && !empty; ++i) {  // as the evictor does: look again until nobody is left
    REQUIRE(kill_cgroups(hierarchy, own_cgroup(), std::array{pod.path()}, nobody));
    ::waitpid(bomb, nullptr, WNOHANG);
    std::this_thread::sleep_for(5ms);
    empty = count() == 0;
  }
  CHECK(empty);
  CHECK(lives(outside.pid()));
  ::waitpid(bomb, nullptr, WNOHANG);
}

TEST_CASE("nobody outside the pods' cgroup is signalled, by whatever path") {
  if (fixture::no_real_cgroups()) return;
  const auto hierarchy = fixture::real_hierarchy();
  const RealCgroup pods{own_cgroup()};
  const RealCgroup pod{own_cgroup("/pod")};
  const RealCgroup neighbour{own_cgroup("s-neighbour")};
  const Sleeper inside;
  const Sleeper outside;
  pod.put(inside.pid());
  neighbour.put(outside.pid());
  using namespace std::string_literals;
  for (const auto& path :
       {"/"s, ""s, "//"s, "."s, "/."s, own_cgroup(), own_cgroup("/"), own_cgroup("/."), own_cgroup("/.."),
        own_cgroup("/../evictd-unit"), own_cgroup("/pod/../../"), own_cgroup("/\0/pod"s), own_cgroup("\0/pod"s),
        own_cgroup("/\0"s), own_cgroup("//pod"), own_cgroup("s-neighbour"),
        own_cgroup("/../" + own_cgroup("s-neighbour").substr(1)), own_cgroup("/\n")}) {
    CAPTURE(path);
    // A pod that is one of several with such a path is not touched either.
    const auto kill = kill_cgroups(hierarchy, own_cgroup(), std::array{pod.path(), path}, nobody);
    if (kill) CHECK(kill->processes.empty());
    CHECK(lives(outside.pid()));
    CHECK(lives(inside.pid()));
  }
  CHECK(error_of(kill_cgroups(hierarchy, own_cgroup(), std::array{neighbour.path()}, nobody)) ==
        "the cgroup \"" + neighbour.path() + "\" does not lie in " + own_cgroup() +
            ", where node.podsCgroup has the pods: nobody in it is killed but by the runtime");
  CHECK_FALSE(kill_cgroups(hierarchy, "/", std::array{pod.path()}, nobody));
  const auto longer_than_paths = own_cgroup("/" + std::string(5000, 'x'));
  CHECK_FALSE(kill_cgroups(hierarchy, own_cgroup(), std::array{longer_than_paths}, nobody));
  CHECK(lives(outside.pid()));
  CHECK(lives(inside.pid()));
}

TEST_CASE("a cgroup that is gone has nobody to kill") {
  if (fixture::no_real_cgroups()) return;
  const auto kill =
      value_of(kill_cgroups(fixture::real_hierarchy(), own_cgroup(), std::array{own_cgroup("/gone")}, nobody));
  CHECK(kill.processes.empty());
  CHECK_FALSE(kill.first);
}

TEST_CASE("the memory of killed processes is released from other threads, whether they are gone already or not") {
  if (fixture::no_real_cgroups()) return;
  const RealCgroup pods{own_cgroup()};
  const RealCgroup pod{own_cgroup("/pod")};
  const Sleeper first;
  const Sleeper second;
  pod.put(first.pid());
  pod.put(second.pid());
  {
    Reaper reaper;
    auto kill = value_of(kill_cgroups(fixture::real_hierarchy(), own_cgroup(), std::array{pod.path()}, nobody));
    CHECK(kill.processes.size() == 2);
    reaper.reap(std::move(kill.processes));
  }  // waits for the threads
  CHECK(dies(first.pid()));
  CHECK(dies(second.pid()));
}

TEST_SUITE_END();

}  // namespace evictd::evict
