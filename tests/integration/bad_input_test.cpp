#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "testbed/agent.hpp"
#include "testbed/cgroup_host.hpp"
#include "testbed/files.hpp"
#include "testbed/programs.hpp"
#include "testbed/wait.hpp"
#include "testbed/work_directory.hpp"

namespace integration::bad_input_test {

using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::v1::Event;
using testbed::Agent;
using testbed::Testbed;

namespace {

constexpr std::int64_t mebi = 1 << 20;

/// Runs evictd with these files and expects it to end by itself.
struct Ended {
  int exit_code;
  std::string errors;
};

Ended run_with(const std::string& agent_yaml, const std::string& kubelet_yaml) {
  const testbed::WorkDirectory directory;
  const auto agent = directory.path() / "agent.yaml";
  const auto kubelet = directory.path() / "kubelet.yaml";
  testbed::replace_file(agent, "apiVersion: evictd.io/v1alpha1\nkind: AgentConfiguration\n" + agent_yaml);
  testbed::replace_file(kubelet,
                        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n" + kubelet_yaml);
  testbed::Process process({testbed::evictd_program(), "run", "--config", agent, "--kubelet-config", kubelet});
  const auto code = process.wait(30s);
  REQUIRE(code.has_value());
  return {*code, process.errors()};
}

bool is_one_line(const std::string& text) { return text.find('\n') == text.size() - 1; }

}  // namespace

TEST_CASE("a wrong configuration ends evictd with 2 and one line that names file, line, key and value") {
  const auto misspelt = run_with("notifier: {disabel: [memcg]}\n", "");
  CHECK(misspelt.exit_code == 2);
  CHECK(is_one_line(misspelt.errors));
  CHECK(misspelt.errors.find("agent.yaml:3: notifier.disabel: unknown key; did you mean \"disable\"?") !=
        std::string::npos);

  const auto malformed = run_with("", "evictionHard:\n  memory.available: 5x\n");
  CHECK(malformed.exit_code == 2);
  CHECK(is_one_line(malformed.errors));
  CHECK(malformed.errors.find("kubelet.yaml:4: ") != std::string::npos);
  CHECK(malformed.errors.find("memory.available") != std::string::npos);
  CHECK(malformed.errors.find("\"5x\"") != std::string::npos);
}

TEST_CASE("a missing cgroup ends evictd with 2 and says what to do") {
  const auto ended = run_with("node: {cgroupRoot: /no-such-node}\n", "");
  CHECK(ended.exit_code == 2);
  CHECK(is_one_line(ended.errors));
  CHECK(ended.errors.find("node.cgroupRoot: no cgroup \"/no-such-node\"") != std::string::npos);
}

TEST_CASE("a container that is gone when it should be stopped does not stop the eviction") {
  Testbed testbed{{.node = {.memory_limit = 1024 * mebi}}};
  Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 300Mi}"}};
  const auto control = testbed.directory() / "control";
  std::filesystem::create_directory(control);
  testbed::replace_file(control / "size", "8388608");
  testbed::ContainerSpec brief{.name = "brief", .args = {"hold", "4Mi"}};
  testbed::ContainerSpec hog{.name = "hog", .args = {"follow", "/control/size"}};
  hog.mounts.push_back({.host_path = control, .container_path = "/control"});
  const auto pod = testbed.cri().run_pod({.name = "pair", .qos = QosClass::BestEffort, .containers = {brief, hog}});
  agent.wait_for_pods(1);

  runtime::v1::RemoveContainerRequest remove;
  remove.set_container_id(pod.container("brief"));
  testbed.cri().calls().ask<runtime::v1::RemoveContainerResponse>(remove);
  testbed::replace_file(control / "size", std::to_string(800 * mebi));
  const auto done = agent.events().wait_for(Event::CLEANUP_DONE, "default/pair", 60s);
  CHECK_FALSE(done.cleanup_done().timed_out());
  INFO(agent.process().errors());
  CHECK_FALSE(agent.events().has(Event::EVICTION_FAILED, "default/pair"));
}

TEST_CASE("a node cgroup that vanishes is said once, and guarded again when it is back") {
  Testbed testbed{{.node = {.memory_limit = 1024 * mebi}, .start_containerd = false}};
  Agent agent{testbed,
              {.thresholds = "evictionHard: {memory.available: 300Mi}",
               .notifier = "fallbackInterval: 100ms",
               .wait_until_ready = false}};
  testbed::wait_until("the first pass", 30s, [&] { return agent.status().passes() > 0; });
  const auto node = testbed.node().memory_directory();
  testbed::remove_cgroups(testbed.node().cgroup().substr(1));
  testbed::wait_until("it says that the cgroup is gone", 30s, [&] {
    return agent.process().errors().find(testbed.node().cgroup()) !=
           agent.process().errors().rfind(testbed.node().cgroup());
  });
  const auto passes = agent.status().passes();
  testbed::wait_until("passes go on", 30s, [&] { return agent.status().passes() > passes + 3; });
  std::filesystem::create_directory(node);
  testbed::wait_until("it is armed again", 30s, [&] {
    const auto status = agent.status();
    return std::ranges::any_of(
               status.signals(),
               [](const auto& signal) { return signal.signal() == "memory.available" && signal.available() > 0; }) &&
           status.passes() > passes;
  });
  CHECK(agent.process().running());
}

}  // namespace integration::bad_input_test
