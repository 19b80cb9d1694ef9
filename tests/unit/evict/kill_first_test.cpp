// The container that holds the most, which goes before the directories of its pod are listed.
#include <doctest/doctest.h>

#include <array>
#include <fstream>
#include <string>

#include "evict/kill.hpp"
#include "fixture/node_tree.hpp"
#include "fixture/real_cgroup.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"
#include "support/skip.hpp"

namespace evictd::evict::kill_first_test {
namespace {

using fixture::dies;
using fixture::lives;
using fixture::own_cgroup;
using fixture::RealCgroup;
using fixture::Sleeper;
using fixture::value_of;

const IsProtected nobody = [](pid_t) { return false; };

}  // namespace

TEST_CASE("cgroup v2: the first container is struck before its cgroup is killed, and counted once") {
  const Sleeper process;
  const fixture::Tree tree{fixture::v2_node(
      {}, 0,
      {fixture::dir(
          "pods", {fixture::dir("pod", {fixture::file("cgroup.procs", ""),
                                        fixture::dir("container", {fixture::file("cgroup.procs",
                                                                                 std::to_string(process.pid()) + "\n"),
                                                                   fixture::file("cgroup.kill", "")}),
                                        fixture::dir("sandbox", {fixture::file("cgroup.procs", "")})})})})};
  const auto hierarchy = value_of(node::CgroupHierarchy::detect(tree.path("cgroup")));
  const auto kill =
      kill_targets(hierarchy, "/pods", std::array{Target{"/pods/pod", "sandbox", "/pods/pod/container"}}, nobody);
  CHECK_FALSE(kill.error);
  CHECK(kill.signalled == 1);
  CHECK(kill.held.size() == 1);
  CHECK(dies(process.pid()));
  CHECK(kill.method == "cgroup.kill");  // what it had forked meanwhile
  std::string content;
  std::ifstream{tree.path("cgroup/pods/pod/container/cgroup.kill")} >> content;
  CHECK(content == "1");
}

TEST_SUITE_BEGIN("real cgroups");

TEST_CASE("what holds the most is struck first, also where the rest takes too long; only processes of its own are") {
  SKIP_IF(fixture::no_real_cgroups());
  const RealCgroup pods{own_cgroup()};
  const RealCgroup pod{own_cgroup("/pod")};
  const RealCgroup largest{own_cgroup("/pod/largest")};
  const RealCgroup other{own_cgroup("/pod/other")};
  const std::array<Sleeper, 4> processes;
  for (const auto& process : {&processes[0], &processes[1]}) largest.put(process->pid());
  for (const auto& process : {&processes[2], &processes[3]}) other.put(process->pid());
  const auto vital = processes[1].pid();
  const auto kill = kill_targets(fixture::real_hierarchy(), own_cgroup(),
                                 std::array{Target{.cgroup = pod.path(), .first = largest.path()}},
                                 [&](pid_t pid) { return pid == vital; }, {.processes = 2});
  CHECK(kill.too_many);
  CHECK(kill.first);
  CHECK(kill.signalled == 1);
  CHECK(dies(processes[0].pid()));
  for (const auto* process : {&processes[1], &processes[2], &processes[3]}) CHECK(lives(process->pid()));

  const auto all = kill_targets(fixture::real_hierarchy(), own_cgroup(),
                                std::array{Target{.cgroup = pod.path(), .first = other.path()}},
                                [&](pid_t pid) { return pid == vital; });
  CHECK_FALSE(all.error);
  CHECK(dies(processes[2].pid()));
  CHECK(dies(processes[3].pid()));
  CHECK(lives(vital));
}

TEST_CASE("a first container that is not the target's, or is left out, is not struck") {
  SKIP_IF(fixture::no_real_cgroups());
  const RealCgroup pods{own_cgroup()};
  const RealCgroup pod{own_cgroup("/pod")};
  const RealCgroup sandbox{own_cgroup("/pod/sandbox")};
  const RealCgroup neighbour{own_cgroup("/neighbour")};
  const Sleeper pause;
  const Sleeper stranger;
  sandbox.put(pause.pid());
  neighbour.put(stranger.pid());
  for (const auto& first : {neighbour.path(), sandbox.path(), pod.path() + "/../neighbour", own_cgroup(),
                            std::string{"/"}, pod.path() + "/gone"}) {
    CAPTURE(first);
    const auto kill =
        kill_targets(fixture::real_hierarchy(), own_cgroup(), std::array{Target{pod.path(), "sandbox", first}}, nobody);
    CHECK_FALSE(kill.error);
    CHECK(kill.signalled == 0);
    CHECK(lives(pause.pid()));
    CHECK(lives(stranger.pid()));
  }
}

TEST_SUITE_END();

}  // namespace evictd::evict::kill_first_test
