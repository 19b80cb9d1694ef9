#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "testbed/agent.hpp"
#include "testbed/files.hpp"
#include "testbed/kubelet_turn.hpp"
#include "testbed/process.hpp"
#include "testbed/programs.hpp"
#include "testbed/wait.hpp"

namespace integration::admission_test {

using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::v1::AdmitResponse;
using evictd::v1::Event;
using testbed::Agent;
using testbed::Testbed;

namespace {

constexpr std::int64_t mebi = 1 << 20;

/// A node of 1 GiB of which 300 MiB may not be requested.
Agent::Options options(std::string more = {}) {
  return {.thresholds = "evictionHard: {memory.available: 300Mi}\n" + std::move(more)};
}

/// A pod that requests so much memory.
std::string pod(const std::string& name, const std::string& memory, const std::string& spec = {}) {
  return fmt::format(R"(apiVersion: v1
kind: Pod
metadata: {{name: {}}}
spec:
  containers: [{{name: main, resources: {{requests: {{memory: {}}}}}}}]
{}
)",
                     name, memory, spec);
}

constexpr auto critical = "  priorityClassName: system-node-critical\n";

testbed::RunningPod run_holder(Testbed& testbed, const std::string& name, std::int64_t request) {
  return testbed.cri().run_pod({.name = name,
                                .qos = QosClass::Burstable,
                                .containers = {{.args = {"hold", "16Mi"}, .memory_request = request}}});
}

struct Outcome {
  int code;
  std::string out;
  std::string err;
};

/// A pod that ends only once its 20 s are over.
testbed::RunningPod run_stubborn(Testbed& testbed, const std::string& name, std::int64_t request) {
  return testbed.cri().run_pod(
      {.name = name,
       .qos = QosClass::Burstable,
       .termination_grace_period = 20s,
       .containers = {{.args = {"--ignore-term", "hold", "16Mi"}, .memory_request = request}}});
}

/// The CPUs on which the pod's container runs, as the kernel has it of its first process: "0-1".
std::string cpus_of(Testbed& testbed, const testbed::RunningPod& pod) {
  constexpr std::string_view row = "Cpus_allowed_list:\t";
  const auto processes = testbed.node().processes(pod.container_cgroup());
  if (processes.empty()) return "none";
  const auto status = testbed::try_read_file(fmt::format("/proc/{}/status", processes.front())).value_or("");
  const auto begin = status.find(row);
  if (begin == std::string::npos) return "none";
  return status.substr(begin + row.size(), status.find('\n', begin) - begin - row.size());
}

/// CPUs from one to another, both included.
std::string from_to(unsigned first, unsigned last) {
  return first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
}

/// evictctl admit with a file of this content.
testbed::Process begin_admit(Testbed& testbed, const Agent& agent, const std::string& text,
                             const std::vector<std::string>& more = {}) {
  const auto file = testbed.directory() / "asked.yaml";
  testbed::replace_file(file, text);
  std::vector<std::string> command{testbed::evictctl_program(), "--address", agent.address(), "admit", "-f", file};
  command.insert(command.end(), more.begin(), more.end());
  return testbed.spawn(command);
}

/// The same to its end.
Outcome evictctl_admit(Testbed& testbed, const Agent& agent, const std::string& text,
                       const std::vector<std::string>& more = {}) {
  auto process = begin_admit(testbed, agent, text, more);
  const auto code = process.wait(120s);
  REQUIRE(code.has_value());
  return {*code, process.output(), process.errors()};
}

}  // namespace

TEST_CASE("evictctl admit says who objects and why, exits with the answer, and asking changes nothing") {
  Testbed testbed{{.node = {.memory_limit = 1024 * mebi}}};
  const auto holder = run_holder(testbed, "holder", 400 * mebi);
  Agent agent{testbed, options()};
  agent.wait_for_pods(1);

  const auto yes = evictctl_admit(testbed, agent, pod("small", "200Mi"));
  CHECK(yes.code == 0);
  CHECK(yes.err.empty());
  CHECK(yes.out.starts_with("default/small: admitted\n"));

  const auto no = evictctl_admit(testbed, agent, pod("large", "600Mi"));
  CHECK(no.code == 1);
  CHECK(no.err.empty());
  CHECK(no.out.starts_with("default/large: rejected\n"));
  CHECK(no.out.find("OutOfmemory") != std::string::npos);
  CHECK(no.out.find("shutdown    not asked") != std::string::npos);

  // Each alone would fit; beside the first the second does not. None of the questions took anything.
  const auto both = evictctl_admit(testbed, agent, pod("a", "200Mi") + "---\n" + pod("b", "200Mi"));
  CHECK(both.code == 1);
  CHECK(both.out.find("default/a: admitted") != std::string::npos);
  CHECK(both.out.find("default/b: rejected") != std::string::npos);
  CHECK(evictctl_admit(testbed, agent, pod("b", "200Mi")).code == 0);
  CHECK(testbed.cri().is_running(holder));
  CHECK_FALSE(agent.events().has(Event::ADMISSION_REJECTED, "default/large"));
}

TEST_CASE("what is no pod is refused in one line, with exit code 2") {
  Testbed testbed{{.node = {.memory_limit = 1024 * mebi}}};
  Agent agent{testbed, options()};
  const auto bad = evictctl_admit(testbed, agent, "metadata: {name: a}\nspec: {containers: [{nam: x}]}\n");
  CHECK(bad.code == 2);
  CHECK(bad.out.empty());
  CHECK(bad.err.find("asked.yaml: pods[0]:2: spec.containers[0]: name is missing\n") != std::string::npos);
  CHECK(evictctl_admit(testbed, agent, "").code == 2);
}

TEST_CASE("a reserved admission counts at once, and is told when it is refused") {
  Testbed testbed{{.node = {.memory_limit = 1024 * mebi}}};
  Agent agent{testbed, options()};
  CHECK(evictctl_admit(testbed, agent, pod("first", "400Mi"), {"--reserve"}).code == 0);
  const auto second = evictctl_admit(testbed, agent, pod("second", "400Mi"), {"--reserve"});
  CHECK(second.code == 1);
  const auto rejected = agent.events().wait_for(Event::ADMISSION_REJECTED, "default/second", 30s);
  CHECK(rejected.admission_rejected().reason() == "OutOfmemory");
  CHECK(rejected.admission_rejected().handler() == "predicates");

  // The pod itself takes the place of its reservation; asked about again it is no neighbour of its own.
  const auto first = run_holder(testbed, "first", 400 * mebi);
  agent.wait_for_pods(1);
  CHECK(evictctl_admit(testbed, agent, pod("first", "400Mi")).code == 0);
  CHECK(evictctl_admit(testbed, agent, pod("second", "400Mi")).code == 1);
  testbed.cri().remove(first);
  testbed::wait_until("the memory of the pod that left is free to request", 60s,
                      [&] { return evictctl_admit(testbed, agent, pod("second", "400Mi")).code == 0; });
}

TEST_CASE("a critical pod that does not fit preempts through the evictor, and is admitted once its victim is gone") {
  Testbed testbed{{.node = {.memory_limit = 1024 * mebi}}};
  const auto large = run_stubborn(testbed, "large", 400 * mebi);
  const auto small = run_holder(testbed, "small", 100 * mebi);
  Agent agent{testbed, options()};
  agent.wait_for_pods(2);

  const auto asked = evictctl_admit(testbed, agent, pod("vital", "400Mi", critical));
  CHECK(asked.code == 0);
  CHECK(asked.out.find("preempts default/large") != std::string::npos);
  CHECK(testbed.cri().is_running(large));

  const auto admitted = evictctl_admit(testbed, agent, pod("vital", "400Mi", critical), {"--reserve"});
  CHECK(admitted.code == 0);
  CHECK(admitted.out.find("preempts default/large") != std::string::npos);
  CHECK_FALSE(testbed.cri().is_running(large));
  const auto intended = agent.events().wait_for(Event::EVICTION_INTENDED, "default/large", 60s);
  CHECK(intended.eviction_intended().reason() == "Preempting");
  CHECK(intended.signal() == "preemption");
  CHECK(intended.message() == "preempting default/large: Preempted in order to admit critical pod");
  static_cast<void>(agent.events().wait_for(Event::CLEANUP_DONE, "default/large", 120s));
  CHECK_FALSE(testbed.cri().is_running(large));
  CHECK(testbed.cri().is_running(small));
  CHECK_FALSE(agent.events().has(Event::EVICTION_INTENDED, "default/small"));
}

TEST_CASE("what pods ask for as a whole decides whether a critical pod fits, and who makes room for it") {
  Testbed testbed{{.node = {.memory_limit = 1024 * mebi}}};
  const auto run = [&](const std::string& name, const std::string& spec) {
    return testbed.cri().run_pod({.name = name,
                                  .qos = QosClass::Burstable,
                                  .annotations = {{"evictd.io/pod-spec", spec}},
                                  .containers = {{.args = {"hold", "16Mi"}}}});
  };
  const auto whole =
      run("whole", R"({"resources": {"requests": {"memory": "400Mi"}}, "containers": [{"name": "main"}]})");
  // Its container takes room, but what it asks for as a whole is no memory: none is made by it.
  const auto apart =
      run("apart", R"({"resources": {"requests": {"cpu": "10m"}},)"
                   R"( "containers": [{"name": "main", "resources": {"requests": {"memory": "200Mi"}}}]})");
  Agent agent{testbed, options()};
  agent.wait_for_pod(whole.uid);
  agent.wait_for_pod(apart.uid);

  const auto vital = pod("vital", "10Mi", std::string(critical) + "  resources: {requests: {memory: 300Mi}}\n");
  const auto admitted = evictctl_admit(testbed, agent, vital, {"--reserve"});
  REQUIRE_MESSAGE(admitted.code == 0, admitted.out << admitted.err);
  CHECK(admitted.out.find("preempts default/whole") != std::string::npos);
  CHECK_FALSE(testbed.cri().is_running(whole));
  static_cast<void>(agent.events().wait_for(Event::CLEANUP_DONE, "default/whole", 120s));
  CHECK(testbed.cri().is_running(apart));
  CHECK_FALSE(agent.events().has(Event::EVICTION_INTENDED, "default/apart"));
}

TEST_CASE("a client that is killed while room is made gives it up; the victim goes all the same") {
  Testbed testbed{{.node = {.memory_limit = 1024 * mebi}}};
  const auto large = run_stubborn(testbed, "large", 400 * mebi);
  Agent agent{testbed, options()};
  agent.wait_for_pods(1);
  auto client = begin_admit(testbed, agent, pod("vital", "500Mi", critical), {"--reserve"});
  static_cast<void>(agent.events().wait_for(Event::EVICTION_INTENDED, "default/large", 60s));
  CHECK(evictctl_admit(testbed, agent, pod("next", "400Mi")).code == 1);
  client.kill();
  testbed::wait_until("the room is anybody's", 60s,
                      [&] { return evictctl_admit(testbed, agent, pod("next", "400Mi")).code == 0; });
  static_cast<void>(agent.events().wait_for(Event::CLEANUP_DONE, "default/large", 120s));
  CHECK_FALSE(testbed.cri().is_running(large));
}

TEST_CASE("exclusive CPUs stay a pod's own over a restart of evictd, and are free when it is gone") {
  Testbed testbed{{.node = {.memory_limit = 1024 * mebi}}};
  const auto pinned = testbed.cri().run_pod(
      {.name = "pinned", .qos = QosClass::Guaranteed, .containers = {{.args = {"hold", "16Mi"}}}});
  // All CPUs but the first may be handed out; the pods ask for all of them.
  const auto cpus = std::thread::hardware_concurrency();
  REQUIRE(cpus >= 2);
  const auto ask = [&](const std::string& name, const std::string& uid) {
    return fmt::format(R"({{"metadata": {{"name": "{}", "uid": "{}"}}, "spec": {{"containers": [{{"name": "main",
                          "resources": {{"limits": {{"cpu": "{}", "memory": "64Mi"}}}}}}]}}}})",
                       name, uid, cpus - 1);
  };
  const auto static_policy = [](const std::string& reserved) {
    auto result = options(fmt::format("cpuManagerPolicy: static\nreservedSystemCPUs: '{}'\n", reserved));
    result.keep_history = true;
    return result;
  };
  const auto other = ask("other", "11111111-1111-1111-1111-111111111111");
  {
    Agent agent{testbed, static_policy("0")};
    agent.wait_for_pods(1);
    const auto given = evictctl_admit(testbed, agent, ask("pinned", pinned.uid), {"--reserve"});
    CHECK(given.code == 0);
    CHECK(given.out.find(cpus == 2 ? "main       1\n" : fmt::format("main       1-{}\n", cpus - 1)) !=
          std::string::npos);
    agent.process().kill();
  }
  {
    Agent agent{testbed, static_policy("0")};
    agent.wait_for_pods(1);
    CHECK(evictctl_admit(testbed, agent, ask("pinned", pinned.uid)).code == 0);
    CHECK(evictctl_admit(testbed, agent, other).out.find("UnexpectedAdmissionError") != std::string::npos);
    agent.process().kill();
  }
  {
    auto changed = static_policy("1");
    changed.wait_until_ready = false;
    CHECK_THROWS_WITH(Agent(testbed, changed), doctest::Contains("drain the node and delete the file"));
  }
  Agent agent{testbed, static_policy("0")};
  agent.wait_for_pods(1);
  testbed.cri().remove(pinned);
  testbed::wait_until("the CPUs of the pod that left are free", 60s,
                      [&] { return evictctl_admit(testbed, agent, other).code == 0; });
}

TEST_CASE("a Guaranteed pod has its CPUs alone, over a restart too; the others have them back when it is gone") {
  Testbed testbed{{.node = {.memory_limit = 1024 * mebi}}};
  const auto cpus = std::thread::hardware_concurrency();
  REQUIRE(cpus >= 2);
  const auto all = from_to(0, cpus - 1);
  const auto own = from_to(1, cpus - 1);
  const auto run = [&](const std::string& name, QosClass qos, const std::string& uid = {}) {
    return testbed.cri().run_pod({.name = name, .uid = uid, .qos = qos, .containers = {{.args = {"hold", "8Mi"}}}});
  };
  const auto wait_for_cpus = [&](const testbed::RunningPod& pod, const std::string& expected) {
    testbed::wait_until(fmt::format("{} runs on the CPUs {}", pod.name, expected), 60s,
                        [&] { return cpus_of(testbed, pod) == expected; });
  };
  auto with = options("cpuManagerPolicy: static\nreservedSystemCPUs: '0'\n");
  with.keep_history = true;
  with.sections = "admission: {enforce: on}\n";
  const std::string uid = "22222222-2222-2222-2222-222222222222";

  const auto early = run("early", QosClass::Burstable);
  CHECK(cpus_of(testbed, early) == all);
  std::optional<testbed::RunningPod> pinned;
  std::optional<testbed::RunningPod> late;
  {
    Agent agent{testbed, with};
    agent.wait_for_pods(1);
    const auto given =
        evictctl_admit(testbed, agent,
                       fmt::format(R"({{"metadata": {{"name": "pinned", "uid": "{}"}}, "spec": {{"containers": [
                         {{"name": "main", "resources": {{"limits": {{"cpu": "{}", "memory": "64Mi"}}}}}}]}}}})",
                                   uid, cpus - 1),
                       {"--reserve"});
    REQUIRE_MESSAGE(given.code == 0, given.out << given.err);
    // They make room before it is there.
    wait_for_cpus(early, "0");
    pinned = run("pinned", QosClass::Guaranteed, uid);
    wait_for_cpus(*pinned, own);
    late = run("late", QosClass::BestEffort);
    wait_for_cpus(*late, "0");
    CHECK(cpus_of(testbed, early) == "0");
    CHECK(cpus_of(testbed, *pinned) == own);
    agent.process().kill();
  }
  const auto meanwhile = run("meanwhile", QosClass::Burstable);
  CHECK(cpus_of(testbed, meanwhile) == all);
  Agent agent{testbed, with};
  wait_for_cpus(meanwhile, "0");
  CHECK(cpus_of(testbed, *pinned) == own);
  testbed.cri().remove(*pinned);
  for (const auto& pod : {early, *late, meanwhile}) wait_for_cpus(pod, all);
}

TEST_CASE("beside a kubelet evictd leaves containers where they are") {
  const testbed::KubeletTurn turn;
  Testbed testbed{{.node = {.memory_limit = 1024 * mebi}}};
  const auto cpus = std::thread::hardware_concurrency();
  REQUIRE(cpus >= 2);
  // Nothing but its name, a process of root's, makes it a kubelet.
  const auto program = testbed.directory() / "kubelet";
  std::filesystem::copy_file("/bin/sleep", program);
  const auto kubelet = testbed.spawn({program, "3600"});
  testbed::wait_until("it is called kubelet", 30s,
                      [&] { return testbed::read_file(fmt::format("/proc/{}/comm", kubelet.pid())) == "kubelet\n"; });
  const auto shared =
      testbed.cri().run_pod({.name = "shared", .qos = QosClass::Burstable, .containers = {{.args = {"hold", "8Mi"}}}});
  Agent agent{testbed, options("cpuManagerPolicy: static\nreservedSystemCPUs: '0'\n")};
  agent.wait_for_pods(1);
  agent.process().wait_until_says("a kubelet runs: it confines containers");
  CHECK(evictctl_admit(testbed, agent,
                       fmt::format(R"({{"metadata": {{"name": "pinned"}}, "spec": {{"containers": [
                         {{"name": "main", "resources": {{"limits": {{"cpu": "{}", "memory": "64Mi"}}}}}}]}}}})",
                                   cpus - 1),
                       {"--reserve"})
            .code == 0);
  CHECK(cpus_of(testbed, shared) == from_to(0, cpus - 1));
}

TEST_CASE("under memory pressure pods that ask for nothing are kept away") {
  Testbed testbed{{.node = {.memory_limit = 1024 * mebi}}};
  // Critical, so that it stays and so does the pressure.
  static_cast<void>(testbed.cri().run_pod({.name = "vital",
                                           .qos = QosClass::Burstable,
                                           .priority = 2'000'000'000,
                                           .containers = {{.args = {"hold", "800Mi"}}}}));
  Agent agent{testbed, options()};
  agent.wait_for_pods(1);  // before it knows them it cannot say anything
  testbed::wait_until("the node is short of memory", 60s, [&] {
    const auto status = agent.status();
    return std::ranges::any_of(status.conditions(), [](const auto& condition) {
      return condition.type() == "MemoryPressure" && condition.status();
    });
  });
  const auto best_effort =
      evictctl_admit(testbed, agent, "metadata: {name: idle}\nspec: {containers: [{name: main}]}\n");
  INFO(best_effort.err);
  CHECK(best_effort.code == 1);
  CHECK(best_effort.out.find("Evicted") != std::string::npos);
  CHECK(best_effort.out.find("The node had condition: [MemoryPressure].") != std::string::npos);
  CHECK(evictctl_admit(testbed, agent, pod("modest", "10Mi")).code == 0);
}

}  // namespace integration::admission_test
