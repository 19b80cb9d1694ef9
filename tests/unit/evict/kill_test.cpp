#include "evict/kill.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <deque>
#include <fstream>
#include <set>
#include <thread>

#include "fixture/few_descriptors.hpp"
#include "fixture/node_tree.hpp"
#include "fixture/patience.hpp"
#include "fixture/random.hpp"
#include "fixture/real_cgroup.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"
#include "node/cgroup_processes.hpp"
#include "support/skip.hpp"

namespace evictd::evict::kill_test {
namespace {

using namespace std::chrono_literals;
using fixture::dies;
using fixture::FewDescriptors;
using fixture::lives;
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

}  // namespace

TEST_CASE("cgroup v2: each cgroup but the sandbox's is killed at once, not the pod's") {
  const Sleeper process;
  const auto with = [](std::string procs) {
    return std::vector{fixture::file("cgroup.procs", std::move(procs)), fixture::file("cgroup.kill", "")};
  };
  auto inside = with("");
  inside.push_back(fixture::dir("container", with(std::to_string(process.pid()) + "\n")));
  inside.push_back(fixture::dir("other", with("")));
  inside.push_back(fixture::dir("sandbox", with(std::to_string(::getpid()) + "\n")));
  const fixture::Tree tree{fixture::v2_node({}, 0, {fixture::dir("pods", {fixture::dir("pod", inside)})})};
  const auto hierarchy = value_of(node::CgroupHierarchy::detect(tree.path("cgroup")));
  const auto kill_file = [&](const std::string& cgroup) {
    std::string content;
    std::ifstream{tree.path("cgroup/pods/pod" + cgroup + "/cgroup.kill")} >> content;
    return content;
  };

  const auto kill = kill_targets(hierarchy, "/pods", std::array{Target{"/pods/pod", "sandbox"}}, nobody);
  CHECK_FALSE(kill.error);
  CHECK(kill.method == "cgroup.kill");
  CHECK(kill.signalled == 1);
  CHECK(kill_file("/container") == "1");
  CHECK(kill_file("/other") == "1");
  CHECK(kill_file("/sandbox").empty());
  CHECK(kill_file("").empty());
  CHECK(lives(process.pid()));

  // Without one to leave out the pod's own does it all.
  tree.write("cgroup/pods/pod/sandbox/cgroup.procs", "");
  CHECK(kill_targets(hierarchy, "/pods", std::array{Target{"/pods/pod"}}, nobody).method == "cgroup.kill");
  CHECK(kill_file("") == "1");
}

TEST_CASE("cgroup v2: where a protected process is among them, or one right in the pod's, each is signalled") {
  for (const bool is_protected : {true, false}) {
    CAPTURE(is_protected);
    const std::array<Sleeper, 2> processes;
    const auto [own, below] = std::pair{processes[0].pid(), processes[1].pid()};
    const fixture::Tree tree{fixture::v2_node(
        {}, 0,
        {fixture::dir(
            "pods", {fixture::dir(
                        "pod", {fixture::file("cgroup.procs", is_protected ? "" : std::to_string(own) + "\n"),
                                fixture::dir("container", {fixture::file("cgroup.procs", std::to_string(below) + "\n"),
                                                           fixture::file("cgroup.kill", "")}),
                                fixture::dir("sandbox", {fixture::file("cgroup.procs", "")})})})})};
    const auto hierarchy = value_of(node::CgroupHierarchy::detect(tree.path("cgroup")));
    const auto kill = kill_targets(hierarchy, "/pods", std::array{Target{"/pods/pod", "sandbox"}},
                                   [&](pid_t pid) { return is_protected && pid == below; });
    CHECK_FALSE(kill.error);
    CHECK(kill.method == "SIGKILL");
    CHECK(kill.signalled == (is_protected ? 0 : 2));
    CHECK(dies(own) == !is_protected);
    CHECK(dies(below) == !is_protected);
  }
}

TEST_SUITE_BEGIN("real cgroups");

TEST_CASE("property: all processes of the pod are killed, and none of any other, of evictd or of who is protected") {
  SKIP_IF(fixture::no_real_cgroups());
  const auto hierarchy = fixture::real_hierarchy();
  for (const auto seed : fixture::seeds(12)) {
    CAPTURE(seed);
    Random random{seed};
    Pods node{random};
    const auto victim = node.pods[static_cast<std::size_t>(random.between(0, std::ssize(node.pods) - 1))];
    std::set<pid_t> spared{::getpid()};
    for (const auto& [pod, process] : node.processes)
      if (pod == victim && random.chance(20)) spared.insert(process.pid());
    const auto kill = kill_targets(hierarchy, own_cgroup(), std::array{Target{victim}},
                                   [&](pid_t pid) { return spared.contains(pid); });
    CHECK_FALSE(kill.error);
    std::size_t killed = 0;
    for (const auto& [pod, process] : node.processes) {
      const bool hit = pod == victim && !spared.contains(process.pid());
      CHECK((hit ? dies(process.pid()) : lives(process.pid())));
      killed += hit ? 1 : 0;
    }
    CHECK(kill.signalled == killed);
    CHECK(kill.held.size() == killed);
    CHECK(kill.first.has_value() == (killed > 0));
  }
}

TEST_CASE("what is left out lives on, with all below it; what lies beside it or in the pod's own cgroup does not") {
  SKIP_IF(fixture::no_real_cgroups());
  // On v2 a cgroup with others below it has no processes of its own.
  const bool inner_processes = fixture::real_hierarchy().version() == node::CgroupVersion::v1;
  const RealCgroup pods{own_cgroup()};
  const RealCgroup pod{own_cgroup("/pod")};
  const RealCgroup sandbox{own_cgroup("/pod/sandbox")};
  const RealCgroup below{own_cgroup("/pod/sandbox/below")};
  const RealCgroup container{own_cgroup("/pod/container")};
  const RealCgroup nested{own_cgroup("/pod/container/sandbox")};
  std::deque<Sleeper> spared;
  below.put(spared.emplace_back().pid());
  if (inner_processes) sandbox.put(spared.emplace_back().pid());
  std::deque<Sleeper> hit;
  nested.put(hit.emplace_back().pid());
  if (inner_processes)
    for (const auto* cgroup : {&container, &pod}) cgroup->put(hit.emplace_back().pid());
  const auto kill =
      kill_targets(fixture::real_hierarchy(), own_cgroup(), std::array{Target{pod.path(), "sandbox"}}, nobody);
  CHECK(kill.signalled == hit.size());
  for (const auto& process : hit) CHECK(dies(process.pid()));
  for (const auto& process : spared) CHECK(lives(process.pid()));
}

TEST_CASE("with fewer descriptors than processes all are killed none the less") {
  SKIP_IF(fixture::no_real_cgroups());
  const RealCgroup pods{own_cgroup()};
  const RealCgroup pod{own_cgroup("/pod")};
  std::deque<Sleeper> processes;
  for (int i = 0; i < 300; ++i) pod.put(processes.emplace_back().pid());
  const FewDescriptors few{40};
  const auto kill = kill_targets(fixture::real_hierarchy(), own_cgroup(), std::array{Target{pod.path()}}, nobody);
  CHECK_FALSE(kill.error);
  CHECK(kill.signalled == 300);
  for (const auto& process : processes) CHECK(dies(process.pid()));
}

TEST_CASE("an error does not discard what was done before it and beside it") {
  SKIP_IF(fixture::no_real_cgroups());
  const RealCgroup pods{own_cgroup()};
  const RealCgroup pod{own_cgroup("/pod")};
  const Sleeper process;
  pod.put(process.pid());
  const auto unreadable = own_cgroup("/pod/cgroup.procs");  // not a directory
  const auto kill =
      kill_targets(fixture::real_hierarchy(), own_cgroup(), std::array{Target{unreadable}, Target{pod.path()}}, nobody);
  CHECK(kill.error);
  CHECK(kill.signalled == 1);
  CHECK(kill.first);
  CHECK(dies(process.pid()));
}

TEST_CASE("more processes than the caller has time for are left to it, and none is signalled") {
  SKIP_IF(fixture::no_real_cgroups());
  const RealCgroup pods{own_cgroup()};
  const RealCgroup pod{own_cgroup("/pod")};
  const std::array<Sleeper, 3> processes;
  for (const auto& process : processes) pod.put(process.pid());
  const auto kill =
      kill_targets(fixture::real_hierarchy(), own_cgroup(), std::array{Target{pod.path()}}, nobody, {.processes = 2});
  CHECK(kill.too_many);
  CHECK(kill.signalled == 0);
  for (const auto& process : processes) CHECK(lives(process.pid()));
}

TEST_CASE("cgroup v1: of a cgroup with thousands of tasks no list is read by who has no time for it") {
  const Sleeper process;
  const auto procs = fixture::file("cgroup.procs", std::to_string(process.pid()) + "\n");
  const fixture::Tree tree{
      fixture::v1_node({}, {}, {fixture::dir("pods", {fixture::dir("pod", {procs})})},
                       {fixture::dir("pods", {fixture::dir("pod", {fixture::file("pids.current", "4097\n")})})})};
  const auto hierarchy = value_of(node::CgroupHierarchy::detect(tree.path("cgroup")));
  const std::array targets{Target{.cgroup = "/pods/pod", .first = "/pods/pod"}};
  const auto kill = kill_targets(hierarchy, "/pods", targets, nobody, {.processes = 512});
  CHECK(kill.too_many);
  CHECK(lives(process.pid()));
  CHECK(kill_targets(hierarchy, "/pods", targets, nobody).signalled == 1);
  CHECK(dies(process.pid()));
}

TEST_CASE("who is forked and gone again counts as well") {
  SKIP_IF(fixture::no_real_cgroups());
  const RealCgroup pods{own_cgroup()};
  const RealCgroup pod{own_cgroup("/pod")};
  const Sleeper of_the_node;  // so that v2 goes by signals, too
  pod.put(of_the_node.pid());
  std::deque<Sleeper> forked;
  pod.put(forked.emplace_back().pid());
  // Each is gone before it could be signalled, and has forked another one.
  const auto forks_and_goes = [&](pid_t pid) {
    if (pid == of_the_node.pid()) return true;
    if (pid != forked.back().pid() || forked.size() > 50) return false;
    pod.put(forked.emplace_back().pid());
    ::kill(pid, SIGKILL);
    return !dies(pid);
  };
  const auto kill = kill_targets(fixture::real_hierarchy(), own_cgroup(), std::array{Target{pod.path()}},
                                 forks_and_goes, {.processes = 5});
  CHECK(kill.too_many);
  CHECK(kill.signalled == 0);
  CHECK(forked.size() <= 7);
}

TEST_CASE("more cgroups than the caller has time for are left to it, but for the first container's processes") {
  SKIP_IF(fixture::no_real_cgroups());
  const RealCgroup pods{own_cgroup()};
  const RealCgroup pod{own_cgroup("/pod")};
  const RealCgroup largest{own_cgroup("/pod/largest")};
  const RealCgroup container{own_cgroup("/pod/container")};
  std::deque<RealCgroup> more;
  for (std::size_t i = 0; i < 5; ++i) more.emplace_back(own_cgroup(number("/pod/container/own-", i)));
  const Sleeper first;
  const Sleeper other;
  largest.put(first.pid());
  more.back().put(other.pid());
  const std::array targets{Target{.cgroup = pod.path(), .first = largest.path()}};
  const auto kill = kill_targets(fixture::real_hierarchy(), own_cgroup(), targets, nobody, {.cgroups = 6});
  CHECK(kill.too_many);
  CHECK(kill.signalled == 1);
  CHECK(dies(first.pid()));
  CHECK(lives(other.pid()));
  CHECK_FALSE(kill_targets(fixture::real_hierarchy(), own_cgroup(), targets, nobody, {.cgroups = 8 * 4}).too_many);
  CHECK(dies(other.pid()));
}

TEST_CASE("what the caller has time for is for all targets together") {
  SKIP_IF(fixture::no_real_cgroups());
  const RealCgroup pods{own_cgroup()};
  const RealCgroup a{own_cgroup("/a")};
  const RealCgroup b{own_cgroup("/b")};
  const std::array<Sleeper, 4> processes;
  for (std::size_t i = 0; i < 4; ++i) (i < 2 ? a : b).put(processes[i].pid());
  const std::array targets{Target{a.path()}, Target{b.path()}};
  const auto kill = kill_targets(fixture::real_hierarchy(), own_cgroup(), targets, nobody, {.processes = 3});
  CHECK(kill.too_many);
  CHECK(kill.signalled == 2);
  CHECK(lives(processes[2].pid()));
  CHECK(lives(processes[3].pid()));
}

TEST_CASE("what is forked meanwhile takes the caller no longer than the rest would have") {
  SKIP_IF(fixture::no_real_cgroups());
  const RealCgroup pods{own_cgroup()};
  const RealCgroup pod{own_cgroup("/pod")};
  const std::array<Sleeper, 2> first;
  for (const auto& process : first) pod.put(process.pid());
  std::deque<Sleeper> forked;
  // Asked while the first look is worked off.
  const auto forks_and_is_protected = [&](pid_t pid) {
    if (pid != first[0].pid()) return false;
    while (forked.size() < 3) pod.put(forked.emplace_back().pid());
    return true;
  };
  const std::array targets{Target{pod.path()}};
  const auto kill =
      kill_targets(fixture::real_hierarchy(), own_cgroup(), targets, forks_and_is_protected, {.processes = 3});
  CHECK(kill.too_many);
  CHECK(kill.signalled == 1);
  CHECK(dies(first[1].pid()));
  for (const auto& process : forked) CHECK(lives(process.pid()));
  CHECK(kill_targets(fixture::real_hierarchy(), own_cgroup(), targets, forks_and_is_protected).signalled == 3);
}

TEST_CASE("a victim that forks without end is emptied completely") {
  SKIP_IF(fixture::no_real_cgroups());
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
  const auto give_up = std::chrono::steady_clock::now() + 60s;
  while (!empty && std::chrono::steady_clock::now() < give_up) {  // as the evictor does: until nobody is left
    REQUIRE_FALSE(kill_targets(hierarchy, own_cgroup(), std::array{Target{pod.path()}}, nobody).error);
    ::waitpid(bomb, nullptr, WNOHANG);
    std::this_thread::sleep_for(5ms);
    empty = count() == 0;
  }
  CHECK(empty);
  CHECK(lives(outside.pid()));
  ::waitpid(bomb, nullptr, WNOHANG);
}

TEST_CASE("nobody outside the pods' cgroup is signalled, by whatever path") {
  SKIP_IF(fixture::no_real_cgroups());
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
        own_cgroup("/../evictd-test"), own_cgroup("/pod/../../"), own_cgroup("/\0/pod"s), own_cgroup("\0/pod"s),
        own_cgroup("/\0"s), own_cgroup("//pod"), own_cgroup("s-neighbour"),
        own_cgroup("/../" + own_cgroup("s-neighbour").substr(1)), own_cgroup("/\n")}) {
    CAPTURE(path);
    // A pod that is one of several with such a path is not touched either.
    const auto kill = kill_targets(hierarchy, own_cgroup(), std::array{Target{pod.path()}, Target{path}}, nobody);
    CHECK(kill.error);
    CHECK(kill.signalled == 0);
    CHECK(lives(outside.pid()));
    CHECK(lives(inside.pid()));
  }
  const auto told = kill_targets(hierarchy, own_cgroup(), std::array{Target{neighbour.path()}}, nobody).error;
  REQUIRE(told);
  CHECK(told->message == "the cgroup \"" + neighbour.path() + "\" does not lie in " + own_cgroup() +
                             ", where node.podsCgroup has the pods: nobody in it is killed but by the runtime");
  CHECK(kill_targets(hierarchy, "/", std::array{Target{pod.path()}}, nobody).error);
  const auto longer_than_paths = own_cgroup("/" + std::string(5000, 'x'));
  CHECK(kill_targets(hierarchy, own_cgroup(), std::array{Target{longer_than_paths}}, nobody).error);
  CHECK(lives(outside.pid()));
  CHECK(lives(inside.pid()));
}

TEST_CASE("a cgroup that is gone has nobody to kill") {
  SKIP_IF(fixture::no_real_cgroups());
  const auto kill =
      kill_targets(fixture::real_hierarchy(), own_cgroup(), std::array{Target{own_cgroup("/gone")}}, nobody);
  CHECK_FALSE(kill.error);
  CHECK(kill.signalled == 0);
  CHECK_FALSE(kill.first);
}

TEST_CASE("the memory of killed processes is released from other threads, whether they are gone already or not") {
  SKIP_IF(fixture::no_real_cgroups());
  const RealCgroup pods{own_cgroup()};
  const RealCgroup pod{own_cgroup("/pod")};
  const Sleeper first;
  const Sleeper second;
  pod.put(first.pid());
  pod.put(second.pid());
  const auto before = fixture::open_descriptors();
  Reaper reaper;
  auto kill = kill_targets(fixture::real_hierarchy(), own_cgroup(), std::array{Target{pod.path()}}, nobody);
  CHECK(kill.held.size() == 2);
  reaper.reap(std::move(kill.held));
  const auto give_up = std::chrono::steady_clock::now() + test::patience;
  while (fixture::open_descriptors() != before && std::chrono::steady_clock::now() < give_up)
    std::this_thread::sleep_for(1ms);
  CHECK(fixture::open_descriptors() == before);
  CHECK(dies(first.pid()));
  CHECK(dies(second.pid()));
}

TEST_SUITE_END();

}  // namespace evictd::evict::kill_test
