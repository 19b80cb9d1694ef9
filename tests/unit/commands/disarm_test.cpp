#include "app/disarm.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "app/configuration.hpp"
#include "config/yaml.hpp"
#include "fixture/node_tree.hpp"
#include "fixture/places.hpp"
#include "fixture/program.hpp"
#include "fixture/result.hpp"
#include "host/node_lock.hpp"
#include "node/brake.hpp"
#include "node/hold_notes.hpp"
#include "testbed/process.hpp"
#include "wake/fence.hpp"

namespace evictd::commands::disarm_test {
namespace {

using fixture::dir;
using fixture::file;
using fixture::value_of;

constexpr std::int64_t MiB = std::int64_t{1} << 20;
constexpr fixture::Machine machine{.total = 4096 * MiB, .free = 2048 * MiB, .available = 2048 * MiB};

/// A fake node beside the file that configures evictd for it.
struct Node {
  explicit Node(const std::vector<fixture::Entry>& entries) : tree{entries} {
    tree.add("", file("agent.yaml", "apiVersion: evictd.io/v1alpha1\nkind: AgentConfiguration\nnode: {cgroupMount: " +
                                        tree.path("cgroup").native() + ", procMount: " + tree.path("proc").native() +
                                        "}\nruntimeDirectory: " + tree.path("run").native() + "\n"));
    tree.add("", file("kubelet.yaml", "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"));
  }

  /// Of agent.yaml.
  [[nodiscard]] std::string text() const { return value_of(config::read_text_file(tree.path("agent.yaml"))); }

  [[nodiscard]] fixture::Outcome run_disarm(const std::vector<std::string>& options = {}) const {
    std::vector<std::string> arguments{"disarm", "--config", tree.path("agent.yaml").native(), "--kubelet-config",
                                       tree.path("kubelet.yaml").native()};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return fixture::run_evictd(arguments);
  }
  /// The line it says; it always succeeds.
  [[nodiscard]] std::string disarm() const {
    const auto outcome = run_disarm();
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.err.empty());
    return outcome.out;
  }
  /// As an evictd that runs.
  [[nodiscard]] std::optional<host::NodeLock> guard() const {
    auto taken = host::NodeLock::take(tree.path("run/lock"), "7.8.9");
    REQUIRE(std::holds_alternative<host::NodeLock>(taken));
    return std::get<host::NodeLock>(std::move(taken));
  }

  fixture::Tree tree;
};

std::vector<fixture::Entry> with_pods(const std::string& high) {
  auto files = fixture::v2_memory({.usage = 300 * MiB});
  files.push_back(file("memory.high", high));
  return fixture::v2_node(machine, 0, {dir("kubepods", files)});
}

/// Of cgroup v1, with a pod that may be held.
std::vector<fixture::Entry> with_pod_on_v1() {
  auto pod = fixture::v1_memory({.usage = 300 * MiB});
  pod.push_back(file("memory.oom_control", "oom_kill_disable 0\n"));
  return fixture::v1_node(machine, {.usage = 1}, {dir("kubepods", {dir("poda", pod)})});
}

os::Directory set_fence(const Node& node, const std::string& cgroup) {
  auto pods = value_of(os::Directory::open(node.tree.path("cgroup/" + cgroup)));
  value_of(wake::adjust_fence(pods, {.usage = 300 * MiB, .level = 400 * MiB}));
  return pods;
}

/// As by the brake.
void hold_pod(const Node& node) {
  const auto hierarchy = value_of(node::CgroupHierarchy::detect(node.tree.path("cgroup")));
  value_of(node::set_brake(hierarchy, node::HoldNotes{node.tree.path("run/held")}, "a", "/kubepods/poda", MiB));
}

}  // namespace

TEST_CASE("disarm lifts a fence of evictd's, once") {
  const Node node{with_pods("max\n")};
  const auto pods = set_fence(node, "kubepods");
  CHECK(node.disarm() == "lifted the fence of /kubepods, which stood at 419430400\n");
  CHECK_FALSE(value_of(node::read_memory_high(pods)).has_value());
  CHECK(node.disarm() == "/kubepods has no fence\n");
}

TEST_CASE("disarm leaves someone else's memory.high") {
  const Node node{with_pods("209715200\n")};
  CHECK(node.disarm() == "memory.high of /kubepods is 209715200, set by someone else: left as it is\n");
  CHECK(node.disarm() == "memory.high of /kubepods is 209715200, set by someone else: left as it is\n");
}

TEST_CASE("disarm gives processes the oom_score_adj back that they had, and does not find it again") {
  const Node node{with_pods("max\n")};
  node.tree.add("cgroup/kubepods", dir("poda", {file("cgroup.procs", "7\n")}));
  node.tree.add("proc", dir("7", {file("oom_score_adj", "995\n"),
                                  file("stat", "7 (a) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 500 0\n")}));
  node.tree.add("", dir("run", {file("oom-scores", "pod /kubepods/poda\nvalue 995 600\nprocess 7 500 600\n")}));
  CHECK(node.disarm() == "/kubepods has no fence; gave 1 processes the oom_score_adj back that they had\n");
  CHECK(node.disarm() == "/kubepods has no fence\n");
}

TEST_CASE("disarm lets go of pods that an evictd held") {
  const Node node{with_pod_on_v1()};
  hold_pod(node);
  CHECK(node.disarm() == "no fence: cgroup v1 has none; let go of one pod that was held\n");
  const auto hierarchy = value_of(node::CgroupHierarchy::detect(node.tree.path("cgroup")));
  CHECK(value_of(node::read_held_file(value_of(hierarchy.memory("/kubepods/poda")), "memory.limit_in_bytes")) ==
        "9223372036854771712");
  CHECK(node.disarm() == "no fence: cgroup v1 has none\n");
}

TEST_CASE("disarm says in one line what became of the fence, who was let go and what was given back") {
  const Node node{with_pod_on_v1()};
  hold_pod(node);
  node.tree.add("cgroup/memory/kubepods/poda", file("cgroup.procs", "7\n"));
  node.tree.add("proc", dir("7", {file("oom_score_adj", "995\n"),
                                  file("stat", "7 (a) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 500 0\n")}));
  node.tree.add("run", file("oom-scores", "pod /kubepods/poda\nvalue 995 600\nprocess 7 500 600\n"));
  CHECK(node.disarm() ==
        "no fence: cgroup v1 has none; let go of one pod that was held; gave 1 processes the oom_score_adj back that "
        "they had\n");
  CHECK(node.disarm() == "no fence: cgroup v1 has none\n");
}

TEST_CASE("disarm goes by evictd's own settings alone: a threshold that cannot be right is in nobody's way") {
  const Node node{with_pods("max\n")};
  node.tree.add("", file("kubelet.yaml", "evictionHard: {memory.available: 5x}\n"));
  node.tree.add("", dir("thresholds.d", {file("20.yaml", "evictionHard: {memory.available: 5x}\n")}));
  node.tree.add(
      "", file("agent.yaml", node.text() + "thresholds: {dropIns: " + node.tree.path("thresholds.d").native() + "}\n"));
  const auto pods = set_fence(node, "kubepods");
  CHECK(node.disarm() == "lifted the fence of /kubepods, which stood at 419430400\n");
  CHECK_FALSE(value_of(node::read_memory_high(pods)).has_value());
}

TEST_CASE("disarm looks at both kinds of pods' cgroup, whichever a kubelet's driver had evictd take") {
  auto files = fixture::v2_memory({.usage = 300 * MiB});
  files.push_back(file("memory.high", "max\n"));
  const Node node{fixture::v2_node(machine, 0, {dir("kubepods", files), dir("kubepods.slice", files)})};
  const auto pods = set_fence(node, "kubepods.slice");
  CHECK(node.disarm() == "/kubepods has no fence; lifted the fence of /kubepods.slice, which stood at 419430400\n");
  CHECK_FALSE(value_of(node::read_memory_high(pods)).has_value());
}

TEST_CASE("disarm lifts the fence of a cgroup that the configuration names no more") {
  auto files = fixture::v2_memory({.usage = 300 * MiB});
  files.push_back(file("memory.high", "max\n"));
  const Node node{fixture::v2_node(machine, 0, {dir("kubepods", files), dir("pods", files)})};
  node.tree.add("", dir("run", {file("fence", "/pods\n")}));
  const auto pods = set_fence(node, "pods");
  CHECK(node.disarm() == "/kubepods has no fence; lifted the fence of /pods, which stood at 419430400\n");
  CHECK_FALSE(value_of(node::read_memory_high(pods)).has_value());
  CHECK_FALSE(std::filesystem::exists(node.tree.path("run/fence")));
}

TEST_CASE("an evictd that cannot start for its configuration lifts what the one before it left all the same") {
  for (const bool of_thresholds : {true, false}) {
    CAPTURE(of_thresholds);
    const Node node{with_pods("max\n")};
    node.tree.add("", dir("thresholds.d", {file("20.yaml", "evictionHard: {memory.available: 5x}\n")}));
    const auto mistake = of_thresholds ? "thresholds: {dropIns: " + node.tree.path("thresholds.d").native() + "}\n"
                                       : "podSources: {apiServer: true}\nkubernetes: {kubeconfig: /nowhere/config}\n";
    node.tree.add("", file("agent.yaml", node.text() + mistake));
    node.tree.add("", dir("run", {file("fence", "")}));
    const auto pods = set_fence(node, "kubepods");
    const auto outcome = fixture::run_evictd({"run", "--config", node.tree.path("agent.yaml").native(),
                                              "--kubelet-config", node.tree.path("kubelet.yaml").native()});
    CHECK(outcome.exit_code == (of_thresholds ? 2 : 1));  // 1: a fake node can be guarded by nobody
    CAPTURE(outcome.err);
    CHECK(outcome.err.find("a fence of /kubepods") + outcome.err.find("the fence of /kubepods") !=
          2 * std::string::npos);
    CHECK_FALSE(value_of(node::read_memory_high(pods)).has_value());
    CHECK_FALSE(std::filesystem::exists(node.tree.path("run/fence")));
  }
}

TEST_CASE("evictd's own settings are the defaults where their file cannot be read, and that is known") {
  const fixture::Tree tree{{file("good.yaml",
                                 "apiVersion: evictd.io/v1alpha1\nkind: AgentConfiguration\n"
                                 "runtimeDirectory: /run/mine\n"),
                            file("bad.yaml", "runtimeDirectory: [\n")}};
  const auto good = app::own_settings({.agent = tree.path("good.yaml").native(), .kubelet = "/nowhere"});
  CHECK_FALSE(good.unreadable);
  CHECK(good.agent.runtime_directory == "/run/mine");
  const auto bad = app::own_settings({.agent = tree.path("bad.yaml").native(), .kubelet = {}});
  REQUIRE(bad.unreadable);
  CHECK(bad.unreadable->message.starts_with(tree.path("bad.yaml").native()));
  CHECK(bad.agent.runtime_directory == config::AgentConfiguration{}.runtime_directory);
}

TEST_CASE(
    "what the unit runs after evictd's end looks where the configuration says, and has nothing to say otherwise") {
  const auto unit = value_of(
      config::read_text_file(std::filesystem::path(fixture::source_root) / "tools/deploy/systemd/evictd.service"));
  const auto begin = unit.find("ExecStopPost=") + std::string_view{"ExecStopPost="}.size();
  auto command = unit.substr(begin, unit.find('\n', begin) - begin);
  constexpr std::string_view installed = "/usr/sbin/evictd";
  command.replace(command.find(installed), installed.size(), fixture::evictd_program);
  const Node node{with_pods("max\n")};
  command += " --config " + node.tree.path("agent.yaml").native();
  CHECK(testbed::run({"sh", "-c", command}).empty());
  node.tree.add("", dir("run", {file("fence", "/kubepods\n")}));
  const auto pods = set_fence(node, "kubepods");
  CHECK(testbed::run({"sh", "-c", command}) == "lifted the fence of /kubepods, which stood at 419430400\n");
  CHECK_FALSE(value_of(node::read_memory_high(pods)).has_value());
}

TEST_CASE("disarm leaves what an evictd that runs has set, and says whose it is and what to do") {
  const Node node{with_pods("max\n")};
  node.tree.add("", dir("run", {file("fence", "/kubepods\n")}));
  const auto pods = set_fence(node, "kubepods");
  auto running = node.guard();
  const auto refused = node.run_disarm();
  CHECK(refused.exit_code == 1);
  CHECK(refused.out.empty());
  CAPTURE(refused.err);
  CHECK(refused.err.starts_with(
      fmt::format("evictd: another evictd guards this node (evictd 7.8.9, pid {}, since 20", ::getpid())));
  CHECK(refused.err.ends_with("): what it has set is left to it; stop it first, and its unit then does this\n"));
  CHECK(refused.err.find('\n') == refused.err.size() - 1);
  const auto passed_over = node.run_disarm({"--if-noted"});
  CHECK(passed_over.exit_code == 0);
  CHECK("evictd: " + passed_over.out == refused.err);
  CHECK(passed_over.err.empty());
  CHECK(value_of(node::read_memory_high(pods)) == 400 * MiB);
  CHECK(std::filesystem::exists(node.tree.path("run/fence")));

  running.reset();
  CHECK(node.run_disarm({"--if-noted"}).out == "lifted the fence of /kubepods, which stood at 419430400\n");
  CHECK_FALSE(value_of(node::read_memory_high(pods)).has_value());
}

TEST_CASE("disarm goes by what an evictd left also where there can be no lock, and says so") {
  const Node node{with_pods("max\n")};
  node.tree.add("", dir("run", {file("fence", "/kubepods\n"), dir("lock", {})}));
  const auto pods = set_fence(node, "kubepods");
  const auto outcome = node.run_disarm();
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out == "lifted the fence of /kubepods, which stood at 419430400\n");
  CHECK(outcome.err.starts_with("evictd: runtimeDirectory: " + node.tree.path("run/lock").native()));
}

TEST_CASE("disarm succeeds where there can be no fence") {
  CHECK(Node{fixture::v2_node(machine, 0)}.disarm() == "no fence: there is no cgroup /kubepods\n");
  CHECK(Node{fixture::v1_node(machine, {.usage = 1})}.disarm() == "no fence: cgroup v1 has none\n");
}

}  // namespace evictd::commands::disarm_test
