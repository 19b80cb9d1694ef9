#include "agent/oom_steering.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "agent/fake_clock.hpp"
#include "agent/fakes.hpp"
#include "agent/oom_groups.hpp"
#include "core/event.hpp"
#include "fixture/node.hpp"
#include "fixture/node_tree.hpp"
#include "fixture/pods.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"

namespace evictd::agent::oom_steering_test {
namespace {

using namespace std::chrono_literals;
using fixture::container;
using fixture::dir;
using fixture::file;
using fixture::operator""_GiB;
using fixture::operator""_MiB;

/// Does at once what it is given.
struct ImmediateWorker final : async::Worker {
  void run(std::move_only_function<void()> work, std::move_only_function<void()> done) override {
    work();
    done();
  }
};

fixture::Entry process(int pid, int adj) {
  return dir(std::to_string(pid),
             {file("oom_score_adj", fmt::format("{}\n", adj)), file("statm", "9 10 9\n"), file("comm", "a\n"),
              file("stat", fmt::format("{} (a) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 500 0\n", pid))});
}

core::Pod with_limit(core::Pod pod) {
  pod.containers = {container("main", {{"cpu", "1"}, {"memory", "1Gi"}}, {{"cpu", "1"}, {"memory", "1Gi"}})};
  return pod;
}
core::Pod burstable(const std::string& name) { return fixture::pod(name, {container("main", {{"memory", "100Mi"}})}); }

pods::RuntimePodPtr listed(const core::Pod& pod) {
  auto runs = *runtime_pod(pod);
  runs.sandbox_id = "s-" + pod.uid;
  return std::make_shared<const pods::RuntimePod>(std::move(runs));
}

/// Of three pods the hog is the first to go by evictd, and "second" would be by the kernel.
struct Node {
  Node()
      : tree{fixture::v1_node({}, {},
                              {dir("kubepods", {dir("podhog", {file("cgroup.procs", "7\n")}),
                                                dir("podsecond", {file("cgroup.procs", "8\n")}),
                                                dir("podsafe", {file("cgroup.procs", "9\n")})})})} {
    for (const auto& [pid, adj] : {std::pair{7, 500}, std::pair{8, 700}, std::pair{9, -997}})
      tree.add("proc", process(pid, adj));
    usage.working_sets = {{"hog", 500_MiB}, {"second", 200_MiB}, {"safe", 10_MiB}};
    const auto pods = fixture::pods({burstable("hog"), burstable("second"), with_limit(fixture::pod("safe"))});
    for (const auto& pod : pods) running.pods[pod->uid] = listed(*pod);
    std::ignore = policy.tell(core::PodsChanged{std::make_shared<core::PodList>(pods)}, clock.now());
    steer();
  }
  void steer() {
    steering = std::make_unique<OomSteering>(reactor.get_executor(),
                                             OomSteering::Parts{.policy = policy,
                                                                .usage = usage,
                                                                .pods = running,
                                                                .clock = clock,
                                                                .worker = std::make_unique<ImmediateWorker>(),
                                                                .scores = std::make_shared<evict::OomScores>(places()),
                                                                .capacity = 1_GiB,
                                                                .acts = [this] { return acts; },
                                                                .lingers = 10ms});
  }
  [[nodiscard]] evict::OomScores::Places places() const {
    return {.cgroup_mount = tree.path("cgroup"),
            .proc = tree.path("proc").native(),
            .note = tree.path("run/oom-scores"),
            .is_protected = [](pid_t) { return false; },
            .memory = 1_GiB};
  }
  [[nodiscard]] int adj(int pid) const {
    std::ifstream in{tree.path(fmt::format("proc/{}/oom_score_adj", pid))};
    int value = -5000;
    in >> value;
    return value;
  }

  Steps steps;
  boost::asio::io_context reactor{1};
  FakeClock clock{reactor};
  FakeUsage usage{steps, reactor};
  FakePods running;
  core::Synchronizer policy{
      core::EvictionPolicy{.thresholds = {fixture::threshold(core::Signal::MemoryAvailable, "1Gi")}}};
  fixture::Tree tree;
  bool acts = true;
  std::unique_ptr<OomSteering> steering;
};

}  // namespace

TEST_CASE(
    "while a threshold is near the first of the ranking is before all others, and a guaranteed pod is untouched") {
  Node node;
  CHECK(node.steering->status().at(0).state == "waiting: no memory threshold is near");
  node.steering->approaches();
  CHECK(node.adj(7) == 705);
  CHECK(node.adj(8) == 700);
  CHECK(node.adj(9) == -997);
  CHECK(node.steering->status().at(0).state == "armed");
}

TEST_CASE("a pod that no list names yet is not raised: its request is inferred from its score") {
  Node node;
  node.running.pods["hog"] = runtime_pod(burstable("hog"));
  node.steering->approaches();
  CHECK(node.adj(7) == 500);
}

TEST_CASE("what was raised is given back some time after the threshold was near, and at the end") {
  Node node;
  node.steering->approaches();
  CHECK(node.adj(7) == 705);
  SUBCASE("the distance has grown") {
    node.steering->recedes();
    CHECK(node.adj(7) == 705);
    const auto give_up = std::chrono::steady_clock::now() + 60s;
    while (node.adj(7) != 500 && std::chrono::steady_clock::now() < give_up) node.reactor.run_one_for(100ms);
    CHECK(node.steering->status().at(0).state == "waiting: no memory threshold is near");
  }
  SUBCASE("the end") { node.steering.reset(); }
  CHECK(node.adj(7) == 500);
  CHECK_FALSE(std::filesystem::exists(node.tree.path("run/oom-scores")));
}

TEST_CASE("what an earlier evictd raised, and the start could not give back, goes back with what is raised now") {
  Node node;
  node.steering.reset();
  evict::OomScores earlier{node.places()};
  CHECK(earlier.follow({.pods = {{.cgroup = "/kubepods/podsecond", .most = 999}}, .behind = 800}).changed == 1);
  CHECK(node.adj(8) > 700);
  node.steer();
  SUBCASE("as a threshold comes near") {
    node.steering->approaches();
    CHECK(node.adj(7) == 705);
    CHECK(node.adj(8) == 700);
  }
  node.steering.reset();
  CHECK(node.adj(7) == 500);
  CHECK(node.adj(8) == 700);
  CHECK_FALSE(std::filesystem::exists(node.tree.path("run/oom-scores")));
}

TEST_CASE("what could not be given back still counts as raised, and goes back the next time") {
  Node node;
  node.steering->approaches();
  const std::string pod = "cgroup/memory/kubepods/podhog";
  node.tree.remove(pod + "/cgroup.procs");
  node.tree.add(pod, dir("cgroup.procs", {}));
  node.steering->recedes();
  node.reactor.run_for(100ms);
  CHECK(node.steering->status().at(0).state == "armed");
  CHECK(node.adj(7) == 705);
  node.tree.remove(pod + "/cgroup.procs");
  node.tree.add(pod, file("cgroup.procs", "7\n"));
  node.steering.reset();
  CHECK(node.adj(7) == 500);
}

TEST_CASE("while decisions are only reported nothing is raised, and what was is given back") {
  Node node;
  SUBCASE("from the start") {}
  SUBCASE("from then on") {
    node.steering->approaches();
    CHECK(node.adj(7) == 705);
  }
  node.acts = false;
  node.steering->approaches();
  CHECK(node.adj(7) == 500);
  CHECK(node.steering->likeliest().empty());
  node.acts = true;
  node.clock.advance(OomSteering::between_looks);
  node.steering->approaches();
  CHECK(node.adj(7) == 705);
}

TEST_CASE("however often it is told that a threshold is near, it looks once a second") {
  Node node;
  node.steering->approaches();
  node.tree.write("proc/7/oom_score_adj", "600\n");  // it has chosen that itself
  node.steering->approaches();
  CHECK(node.adj(7) == 600);
  node.clock.advance(OomSteering::between_looks);
  node.steering->approaches();
  CHECK(node.adj(7) == 705);
  node.steering.reset();
  CHECK(node.adj(7) == 600);
}

TEST_CASE("memory.oom.group is set for a pod of a trusted namespace that asks for it, and for no other") {
  const auto wishing = [](const std::string& name, const std::string& name_space, const std::string& value) {
    auto pod = fixture::with_annotation(fixture::pod(name), "evictd.io/oom-group", value);
    pod.name_space = name_space;
    return pod;
  };
  const auto pod = [](const std::string& name) { return dir("pod" + name, {file("memory.oom.group", "0\n")}); };
  const fixture::Tree tree{fixture::v2_node({}, 0, {dir("kubepods", {pod("a"), pod("b"), pod("c"), pod("d")})})};
  const auto hierarchy = fixture::value_of(node::CgroupHierarchy::detect(tree.path("cgroup")));
  FakePods running;
  auto plain = fixture::pod("d");
  plain.name_space = "kube-system";
  const auto pods = fixture::pods({wishing("a", "kube-system", "true"), wishing("b", "default", "true"),
                                   wishing("c", "kube-system", "yes"), plain});
  for (const auto& each : pods) running.pods[each->uid] = runtime_pod(*each);
  OomGroups groups{hierarchy, running, pods::TrustedNamespaces{{"kube-system"}}};
  groups.pods_changed(pods);
  const auto group = [&](const std::string& name) {
    std::ifstream in{tree.path("cgroup/kubepods/pod" + name + "/memory.oom.group")};
    int value = -1;
    in >> value;
    return value;
  };
  CHECK(group("a") == 1);
  CHECK(group("b") == 0);
  CHECK(group("c") == 0);
  CHECK(group("d") == 0);
}

}  // namespace evictd::agent::oom_steering_test
