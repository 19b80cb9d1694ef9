#include "evict/ready_strike.hpp"

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "evict/kill.hpp"
#include "evict/sandbox_cgroup.hpp"
#include "fixture/few_descriptors.hpp"
#include "fixture/node_tree.hpp"
#include "fixture/pods.hpp"
#include "fixture/real_cgroup.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"
#include "support/skip.hpp"

namespace evictd::evict::ready_strike_test {
namespace {

using namespace std::chrono_literals;
using fixture::dies;
using fixture::dir;
using fixture::FewDescriptors;
using fixture::file;
using fixture::lives;
using fixture::own_cgroup;
using fixture::RealCgroup;
using fixture::Sleeper;
using fixture::value_of;

const IsProtected nobody = [](pid_t) { return false; };
constexpr core::Instant start{1h};

pods::RuntimePodPtr pod_with(const std::string& cgroup, std::vector<std::string> containers) {
  pods::RuntimePod pod{.pod = std::make_shared<const core::Pod>(fixture::pod(cgroup)), .cgroup = cgroup};
  for (auto& container : containers)
    pod.containers.push_back({.id = container.substr(container.rfind('/') + 1),
                              .name = "main",
                              .state = pods::ContainerState::Running,
                              .cgroup = std::move(container)});
  return std::make_shared<const pods::RuntimePod>(std::move(pod));
}

/// Knows the containers of pods, and makes strikes at them ready.
struct Ready {
  explicit Ready(node::CgroupHierarchy of, IsProtected is_protected = nobody, std::string proc = "/proc")
      : hierarchy{std::move(of)},
        strike{{.hierarchy = hierarchy,
                .cgroups = cgroups,
                .is_protected = std::move(is_protected),
                .proc = std::move(proc)}} {}

  void prepare(const std::vector<pods::RuntimePodPtr>& pods, core::Instant now = start) {
    std::vector<node::PodCgroup> known;
    for (const auto& pod : pods) {
      auto& cgroup = known.emplace_back(node::PodCgroup{.uid = pod->pod->uid, .path = pod->cgroup});
      for (const auto& container : pod->containers) cgroup.containers.push_back(container.cgroup);
    }
    cgroups.sync(known);
    strike.prepare(pods, now);
  }
  Kill kill(const std::string& pods_cgroup, const Target& target, const IsProtected& is_protected = nobody) {
    return kill_targets(hierarchy, pods_cgroup, std::array{target}, is_protected, {.processes = 1000}, &strike);
  }

  node::CgroupHierarchy hierarchy;
  node::PodCgroups cgroups{hierarchy};
  ReadyStrike strike;
};

fixture::Entry cgroup(std::string name, const std::string& processes, std::string tasks = "1\n") {
  return dir(std::move(name), fixture::v2_memory({.usage = 1 << 20}, {file("cgroup.procs", processes),
                                                                      file("pids.current", std::move(tasks))}));
}

/// A pod with one container, in which this process is.
std::vector<fixture::Entry> node_with(pid_t process, std::string tasks = "1\n") {
  return fixture::v2_node(
      {}, 0,
      {dir("pods",
           {dir("pod", fixture::v2_memory({}, {file("cgroup.procs", ""),
                                               cgroup("c", std::to_string(process) + "\n", std::move(tasks))}))})});
}

node::CgroupHierarchy detect(const fixture::Tree& tree) {
  return value_of(node::CgroupHierarchy::detect(tree.path("cgroup")));
}

const Target container_first{.cgroup = "/pods/pod", .first = "/pods/pod/c"};

/// A pod of this machine with one container.
struct RealPod {
  RealCgroup pods{own_cgroup()};
  RealCgroup pod{own_cgroup("/pod")};
  RealCgroup container{own_cgroup("/pod/container")};

  [[nodiscard]] pods::RuntimePodPtr listed() const { return pod_with(pod.path(), {container.path()}); }
  [[nodiscard]] Target target() const { return {.cgroup = pod.path(), .first = container.path()}; }
};

}  // namespace

TEST_CASE("a strike that is ready lists by what is open, and asks of nobody who was found not to be protected") {
  const Sleeper process;
  const fixture::Tree tree{node_with(process.pid())};
  int asked = 0;
  const IsProtected counting = [&](pid_t) { return ++asked < 0; };
  Ready ready{detect(tree), counting};
  ready.prepare({pod_with("/pods/pod", {"/pods/pod/c"})});
  CHECK(asked == 1);
  CHECK(ready.strike.descriptors() == 3);
  tree.remove("cgroup/pods/pod/c/cgroup.procs");  // by its path nobody would be found
  const auto kill = ready.kill("/pods", container_first, counting);
  CHECK(kill.signalled == 1);
  CHECK(dies(process.pid()));
  CHECK(asked == 1);
  CHECK(ready.strike.descriptors() == 0);
}

TEST_CASE("a process that calls itself as the node's do after it was looked at is looked at again") {
  for (const bool is_protected : {true, false}) {
    CAPTURE(is_protected);
    const Sleeper process;
    const fixture::Tree tree{node_with(process.pid())};
    const auto comm = "proc/" + std::to_string(process.pid()) + "/comm";
    tree.add("proc", dir(std::to_string(process.pid()), {file("comm", "sh\n")}));
    Ready ready{detect(tree), nobody, tree.path("proc").native()};
    ready.prepare({pod_with("/pods/pod", {"/pods/pod/c"})});
    tree.write(comm, "kubelet\n");
    ready.kill("/pods", container_first, [&](pid_t) { return is_protected; });
    CHECK((is_protected ? lives(process.pid()) : dies(process.pid())));
  }
}

TEST_CASE("whoever is protected when the strike is prepared is asked for again, and lives") {
  const Sleeper process;
  const fixture::Tree tree{node_with(process.pid())};
  const IsProtected everybody = [](pid_t) { return true; };
  Ready ready{detect(tree), everybody};
  ready.prepare({pod_with("/pods/pod", {"/pods/pod/c"})});
  CHECK(ready.kill("/pods", container_first, everybody).signalled == 0);
  CHECK(lives(process.pid()));
}

TEST_CASE("a container with very many tasks is not listed beforehand, and struck all the same") {
  const Sleeper process;
  const fixture::Tree tree{node_with(process.pid(), "10000\n")};
  int asked = 0;
  const IsProtected counting = [&](pid_t) { return ++asked < 0; };
  Ready ready{detect(tree), counting};
  ready.prepare({pod_with("/pods/pod", {"/pods/pod/c"})});
  CHECK(asked == 0);
  CHECK(ready.strike.descriptors() == 2);
  CHECK(ready.kill("/pods", container_first, counting).signalled == 1);
  CHECK(dies(process.pid()));
}

TEST_CASE("descriptors are bounded, are of the likeliest pods, and are closed when these leave the list") {
  std::vector<fixture::Entry> cgroups;
  std::vector<pods::RuntimePodPtr> pods;
  for (int i = 10; i < 40; ++i) {
    const auto name = "pod" + std::to_string(i);
    cgroups.push_back(dir(name, fixture::v2_memory({}, {cgroup("a", "1\n"), cgroup("b", "1\n"), cgroup("c", "1\n")})));
    pods.push_back(pod_with("/" + name, {"/" + name + "/a", "/" + name + "/b", "/" + name + "/c"}));
  }
  const fixture::Tree tree{fixture::v2_node({}, 0, std::move(cgroups))};
  Ready ready{detect(tree)};
  ready.prepare(pods);
  CHECK(ready.strike.descriptors() > 0);
  CHECK(ready.strike.descriptors() <= ReadyStrike::most_descriptors);
  CHECK_FALSE(ready.strike.take("/pod18/a"));  // the ninth
  CHECK(ready.strike.take("/pod10/a"));
  CHECK_FALSE(ready.strike.take("/pod10/a"));  // it is gone with the strike
  ready.prepare({});
  CHECK(ready.strike.descriptors() == 0);
}

TEST_CASE("what is ready stays as it is for a while, and is opened anew then") {
  const Sleeper process;
  const fixture::Tree tree{node_with(process.pid())};
  int asked = 0;
  Ready ready{detect(tree), [&](pid_t) { return ++asked < 0; }};
  const std::vector pods{pod_with("/pods/pod", {"/pods/pod/c"})};
  ready.prepare(pods);
  ready.prepare(pods, start + ReadyStrike::lasts - 1ms);
  CHECK(asked == 1);
  ready.prepare(pods, start + ReadyStrike::lasts);
  CHECK(asked == 2);
}

TEST_CASE("a rehearsal signals nobody, and leaves all as ready as before") {
  const Sleeper process;
  const fixture::Tree tree{node_with(process.pid())};
  Ready ready{detect(tree)};
  const auto pod = pod_with("/pods/pod", {"/pods/pod/c"});
  ready.strike.rehearse(*pod);  // nothing is ready
  ready.prepare({pod});
  const auto before = ready.strike.descriptors();
  ready.strike.rehearse(*pod);
  CHECK(lives(process.pid()));
  CHECK(ready.strike.descriptors() == before);
  CHECK(ready.kill("/pods", container_first).signalled == 1);
  CHECK(dies(process.pid()));
}

TEST_CASE("without descriptors nothing is kept, and with the next ones it is again") {
  const Sleeper process;
  const fixture::Tree tree{node_with(process.pid())};
  Ready ready{detect(tree)};
  const std::vector pods{pod_with("/pods/pod", {"/pods/pod/c"})};
  {
    const FewDescriptors none{1};
    ready.prepare(pods);
  }
  CHECK(ready.strike.descriptors() == 0);
  ready.prepare(pods);
  CHECK(ready.strike.descriptors() > 0);
}

TEST_CASE("the sandbox's usage is read from what is open, and by its path where that is gone") {
  const fixture::Tree tree{
      fixture::v2_node({}, 0, {dir("pod", fixture::v2_memory({}, {cgroup("c", ""), cgroup("sandbox", "")}))})};
  Ready ready{detect(tree)};
  auto pod = *pod_with("/pod", {"/pod/c"});
  pod.sandbox_id = "sandbox";
  CHECK(expected_sandbox_cgroup(pod) == "/pod/sandbox");
  CHECK_FALSE(ready.strike.usage("/pod/sandbox"));
  ready.prepare({std::make_shared<const pods::RuntimePod>(pod)});
  CHECK(ready.strike.usage("/pod/sandbox") == 1 << 20);
  CHECK(sandbox_cgroup(ready.hierarchy, pod, &ready.strike) == SandboxCgroup{"sandbox", 1 << 20});
  ready.strike.release();
  CHECK(sandbox_cgroup(ready.hierarchy, pod, &ready.strike) == SandboxCgroup{"sandbox", 1 << 20});
}

TEST_CASE("a process is told from a later one of its pid") {
  auto process = std::make_unique<Sleeper>();
  const auto known = Unprotected::look(process->pid(), nobody);
  REQUIRE(known);
  CHECK(known->pid() == process->pid());
  CHECK(known->is_still());
  process.reset();  // and awaited: the pid is free
  CHECK_FALSE(known->is_still());
  CHECK_FALSE(Unprotected::look(known->pid(), nobody));
}

TEST_SUITE_BEGIN("real cgroups");

TEST_CASE("whoever joined or was forked since the strike was prepared is struck with the others") {
  SKIP_IF(fixture::no_real_cgroups());
  const RealPod node;
  const std::array<Sleeper, 3> processes;
  node.container.put(processes[0].pid());
  Ready ready{fixture::real_hierarchy()};
  ready.prepare({node.listed()});
  node.container.put(processes[1].pid());
  const auto kill = ready.kill(own_cgroup(), node.target());
  CHECK_FALSE(kill.error);
  CHECK(kill.signalled == 2);
  for (const auto* process : {&processes[0], &processes[1]}) CHECK(dies(process->pid()));
  CHECK(lives(processes[2].pid()));
}

TEST_CASE("each of the two lists is the kernel's at that moment, also on v1, which keeps them for those who read on") {
  SKIP_IF(fixture::no_real_cgroups());
  const RealPod node;
  const RealCgroup neighbour{own_cgroup("/neighbour")};
  const std::array<Sleeper, 2> processes;
  node.container.put(processes[0].pid());
  Ready ready{fixture::real_hierarchy()};
  ready.prepare({node.listed()});
  auto container = ready.strike.take(node.container.path());
  REQUIRE(container);
  CHECK(container->list() == std::vector{processes[0].pid()});
  neighbour.put(processes[0].pid());
  node.container.put(processes[1].pid());
  CHECK(container->list() == std::vector{processes[1].pid()});
  CHECK_FALSE(container->list());
}

TEST_CASE("a process that left the container since lives on") {
  SKIP_IF(fixture::no_real_cgroups());
  const RealPod node;
  const RealCgroup neighbour{own_cgroup("/neighbour")};
  const Sleeper moved;
  node.container.put(moved.pid());
  Ready ready{fixture::real_hierarchy()};
  ready.prepare({node.listed()});
  neighbour.put(moved.pid());
  CHECK(ready.kill(own_cgroup(), node.target()).signalled == 0);
  CHECK(lives(moved.pid()));
}

TEST_CASE("of a cgroup that was removed and made again by the same name the new processes are struck") {
  SKIP_IF(fixture::no_real_cgroups());
  const RealPod node;
  auto old = std::make_unique<Sleeper>();
  node.container.put(old->pid());
  Ready ready{fixture::real_hierarchy()};
  ready.prepare({node.listed()});
  old.reset();
  node.container.remove();
  node.container.make();
  const Sleeper next;
  node.container.put(next.pid());
  const auto kill = ready.kill(own_cgroup(), node.target());
  CHECK_FALSE(kill.error);
  CHECK(kill.signalled == 1);
  CHECK(dies(next.pid()));
}

TEST_CASE("a container that is gone when the strike comes leaves it to the rest of the pod") {
  SKIP_IF(fixture::no_real_cgroups());
  const RealPod node;
  Ready ready{fixture::real_hierarchy()};
  {
    const Sleeper old;
    node.container.put(old.pid());
    ready.prepare({node.listed()});
  }
  node.container.remove();
  const RealCgroup restarted{own_cgroup("/pod/restarted")};
  const Sleeper process;
  restarted.put(process.pid());
  const auto kill = ready.kill(own_cgroup(), node.target());
  CHECK_FALSE(kill.error);
  CHECK(dies(process.pid()));
}

TEST_CASE("where descriptors are short at the strike those that are kept are given back, and all are killed") {
  SKIP_IF(fixture::no_real_cgroups());
  const RealPod node;
  std::deque<Sleeper> processes;
  for (int i = 0; i < 100; ++i) node.container.put(processes.emplace_back().pid());
  Ready ready{fixture::real_hierarchy()};
  ready.prepare({node.listed()});
  const FewDescriptors few{30};
  const auto kill = ready.kill(own_cgroup(), node.target());
  CHECK_FALSE(kill.error);
  CHECK(kill.signalled == 100);
  for (const auto& process : processes) CHECK(dies(process.pid()));
  CHECK(ready.strike.descriptors() == 0);
}

TEST_CASE("where descriptors are short for a pod that is not ready, what is kept for another is given back") {
  SKIP_IF(fixture::no_real_cgroups());
  const RealPod node;
  const RealCgroup other{own_cgroup("/pod/other")};
  std::deque<Sleeper> processes;
  for (int i = 0; i < 4; ++i) node.container.put(processes.emplace_back().pid());
  for (int i = 0; i < 4; ++i) other.put(processes.emplace_back().pid());
  Ready ready{fixture::real_hierarchy()};
  ready.prepare({node.listed()});
  REQUIRE(ready.strike.descriptors() >= 6);
  const FewDescriptors few{4};
  const auto kill = ready.kill(own_cgroup(), {.cgroup = node.pod.path(), .first = other.path()});
  CHECK_FALSE(kill.error);
  for (const auto& process : processes) CHECK(dies(process.pid()));
  CHECK(ready.strike.descriptors() == 0);
}

TEST_CASE("what is ready widens nothing: a container beside the pod, or one that is left out, is not struck") {
  SKIP_IF(fixture::no_real_cgroups());
  const RealPod node;
  const RealCgroup neighbour{own_cgroup("/neighbour")};
  const Sleeper stranger;
  const Sleeper sandboxed;
  neighbour.put(stranger.pid());
  node.container.put(sandboxed.pid());
  Ready ready{fixture::real_hierarchy()};
  ready.prepare({pod_with(node.pod.path(), {node.container.path(), neighbour.path()})});
  ready.kill(own_cgroup(), {.cgroup = node.pod.path(), .left_out = "container", .first = node.container.path()});
  ready.kill(own_cgroup(), {.cgroup = node.pod.path(), .left_out = "container", .first = neighbour.path()});
  CHECK(lives(stranger.pid()));
  CHECK(lives(sandboxed.pid()));
}

TEST_SUITE_END();

}  // namespace evictd::evict::ready_strike_test
