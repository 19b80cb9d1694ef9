#include "agent/kernel_oom.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "agent/fake_clock.hpp"
#include "agent/fakes.hpp"
#include "core/event.hpp"
#include "fixture/node.hpp"
#include "fixture/node_tree.hpp"
#include "fixture/pods.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"

namespace evictd::agent::kernel_oom_test {
namespace {

using namespace std::chrono_literals;
using fixture::dir;
using fixture::file;
using fixture::pod;
using fixture::operator""_MiB;

fixture::Entry counted(const std::string& name, std::vector<fixture::Entry> below = {}) {
  below.push_back(file("memory.events", "max 0\noom 0\noom_kill 0\n"));
  return dir(name, std::move(below));
}

/// Two pods of a node of cgroup v2: "small", and "large", which goes first.
struct Node final : KillOrder {
  explicit Node(bool has_log = true)
      : tree{fixture::v2_node({}, 0, {counted("kubepods", {counted("podsmall"), counted("podlarge")})})},
        hierarchy{fixture::value_of(node::CgroupHierarchy::detect(tree.path("cgroup")))},
        kills{reactor.get_executor(),
              {.policy = policy,
               .usage = usage,
               .pods = running,
               .records = records,
               .hierarchy = hierarchy,
               .pods_cgroup = "/kubepods",
               .clock = clock,
               .log = log,
               .order = this,
               .has_log = has_log,
               .window = 20ms}} {
    usage.working_sets = {{"small", 1_MiB}, {"large", 512_MiB}};
    list(fixture::pods({pod("small"), pod("large")}));
  }
  [[nodiscard]] std::string likeliest() const override { return went_first; }
  [[nodiscard]] Steps told() const {
    Steps lines;
    for (const auto& kill : log.kernel_kills) lines.push_back(in_words(kill));
    return lines;
  }
  static std::string in_words(const KernelKill& kill) {
    return fmt::format("{}/{} {} {} {}x{}", kill.pod->uid, kill.container, kill.kill.pid, kill.shortage, kill.kills,
                       kill.own_choice ? " own" : "");
  }
  void list(const core::PodList& pods) {
    running.pods.clear();
    for (const auto& each : pods) {
      auto runs = *runtime_pod(*each);
      runs.containers.at(0).cgroup = runs.cgroup + "/c1";
      running.pods[each->uid] = std::make_shared<const pods::RuntimePod>(std::move(runs));
    }
    std::ignore = policy.tell(core::PodsChanged{std::make_shared<core::PodList>(pods)}, clock.now());
    kills.pods_changed(pods);
  }
  /// As the kernel counts it.
  void count(const std::string& uid, int oom_kills) const {
    tree.write("cgroup/kubepods/pod" + uid + "/memory.events", fmt::format("max 9\noom 9\noom_kill {}\n", oom_kills));
  }
  bool kill(const std::string& uid, std::int64_t pid, const std::string& limited = "",
            const std::string& in_front = "") {
    return kills.killed({.pid = pid,
                         .comm = "load",
                         .cgroup = in_front + "/kubepods/pod" + uid + "/c1",
                         .shortage = limited.empty() ? core::OomShortage::Node : core::OomShortage::Limit,
                         .limited = limited});
  }

  Steps steps;
  boost::asio::io_context reactor{1};
  FakeClock clock{reactor};
  FakeUsage usage{steps, reactor};
  FakePods running;
  EvictionRecords records;
  core::Synchronizer policy{
      core::EvictionPolicy{.thresholds = {fixture::threshold(core::Signal::MemoryAvailable, "1Gi")}}};
  fixture::Tree tree;
  node::CgroupHierarchy hierarchy;
  FakeLog log{steps};
  std::string went_first;
  KernelOom kills;
};

}  // namespace

TEST_CASE("a kill has its pod and container, what was short, and whether it was evictd's own choice") {
  Node node;
  CHECK_FALSE(node.kill("small", 7, "/kubepods/podsmall/c1"));  // a pod's own limit is no news for the node
  CHECK(node.kill("large", 8));
  CHECK(node.kill("large", 9, "/kubepods"));
  CHECK(node.told() == Steps{"small/main 7 limit 1x", "large/main 8 node 1x own", "large/main 9 node 1x own"});
}

TEST_CASE("who went first a moment ago was evictd's choice, though the list has it as dead by now") {
  Node node;
  node.went_first = "small";
  std::ignore = node.kill("small", 7);
  CHECK(node.told() == Steps{"small/main 7 node 1x own"});
}

TEST_CASE("the paths of a machine of which evictd sees a part only are found as well") {
  Node node;
  CHECK(node.kill("large", 8, "", "/machine/node"));
  CHECK(node.told() == Steps{"large/main 8 node 1x own"});
}

TEST_CASE("a cgroup that a container named as another pod's is the container's") {
  Node node;
  std::ignore = node.kills.killed({.pid = 7, .comm = "x", .cgroup = "/kubepods/podsmall/c1/kubepods/podlarge/c1"});
  CHECK(node.told() == Steps{"small/main 7 unknown 1x"});
}

TEST_CASE("who is no pod's is not told") {
  Node node;
  CHECK(node.kills.killed({.pid = 7, .cgroup = "/system.slice/x", .shortage = core::OomShortage::Node}));
  std::ignore = node.kills.killed({.pid = 7, .cgroup = "/kubepods/podlargest/c1"});
  CHECK(node.told().empty());
}

TEST_CASE("what the log told the counter does not tell again") {
  Node node;
  std::ignore = node.kill("large", 8);
  node.count("large", 1);
  node.kills.look();
  CHECK(node.told().size() == 1);
  node.kills.look();
  CHECK(node.told().size() == 1);
}

TEST_CASE("what the log did not tell the counter does, and the log's late word of it is no news") {
  Node node;
  node.count("large", 2);
  node.kills.look();
  CHECK(node.told() == Steps{"large/main 0 unknown 2x own"});
  std::ignore = node.kill("large", 8);
  std::ignore = node.kill("large", 9);
  CHECK(node.told().size() == 1);
  std::ignore = node.kill("large", 10);
  CHECK(node.told().size() == 2);
}

TEST_CASE("of a group's first victim, which the kernel tells and counts twice, is told once") {
  Node node;
  std::ignore = node.kill("large", 8);
  std::ignore = node.kill("large", 8);
  std::ignore = node.kill("large", 9);
  node.count("large", 3);
  node.kills.look();
  CHECK(node.told() == Steps{"large/main 8 node 1x own", "large/main 9 node 1x own"});
}

TEST_CASE("what was counted before a pod was known is no news, nor what an earlier cgroup of the name had") {
  Node node{false};
  node.count("large", 5);
  node.list({});
  node.list(fixture::pods({pod("small"), pod("large")}));
  node.kills.look();
  CHECK(node.told().empty());
  node.count("large", 1);  // it was made again
  node.kills.look();
  CHECK(node.told() == Steps{"large/main 0 unknown 1x own"});
}

TEST_CASE("of very many new pods the counters are looked at in several turns, and then count like any other") {
  Node node;
  const auto count = KernelOom::first_at_a_time + 50;
  core::PodList pods;
  for (std::size_t i = 0; i < count; ++i) {
    pods.push_back(std::make_shared<core::Pod>(pod("new" + std::to_string(i))));
    node.tree.add("cgroup/kubepods", counted("pod" + pods.back()->uid));
  }
  const auto all_are_killed = [&](int times) {
    for (const auto& each : pods) node.count(each->uid, times);
    const auto before = node.told().size();
    node.kills.look();
    return node.told().size() - before;
  };
  node.list(pods);
  CHECK(all_are_killed(1) == KernelOom::first_at_a_time);  // of the others it is what was there before
  node.reactor.restart();
  node.reactor.poll();
  CHECK(all_are_killed(2) == count);
}

TEST_CASE("many kills of one pod are few events, and none is lost") {
  Node node;
  for (int pid = 1; pid <= 100; ++pid) std::ignore = node.kill("large", pid);
  std::ignore = node.kill("small", 1000);
  CHECK(node.told().size() == KernelOom::told_singly + 1);
  CHECK(node.told().back() == "small/main 1000 node 1x");
  const auto give_up = std::chrono::steady_clock::now() + 60s;
  while (node.told().size() == KernelOom::told_singly + 1 && std::chrono::steady_clock::now() < give_up)
    node.reactor.run_one_for(100ms);
  CHECK(node.told().back() == "large/main 100 node 92x own");
}

}  // namespace evictd::agent::kernel_oom_test
