#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <future>
#include <optional>
#include <sstream>
#include <thread>

#include "testbed/agent.hpp"
#include "testbed/cri_proxy.hpp"
#include "testbed/files.hpp"
#include "testbed/process.hpp"
#include "testbed/wait.hpp"

namespace integration::device_plugins_test {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using evictd::core::QosClass;
using testbed::Agent;
using testbed::CriProxy;
using testbed::Testbed;

namespace {

constexpr std::int64_t mebi = 1 << 20;
const std::string chosen = "example.com/chosen";
const std::string nodes = "example.com/node";

/// A plugin that runs, with its devices in a file.
class Plugin {
 public:
  Plugin(Testbed& testbed, const std::string& program, std::string resource)
      : testbed_{testbed}, program_{program}, resource_{std::move(resource)}, own_{testbed.directory() / program} {
    fs::create_directory(own_);
  }

  void set_devices(const std::string& lines) const { testbed::replace_file(own_ / "devices", lines); }
  void start() {
    const auto programs = fs::read_symlink("/proc/self/exe").parent_path() / "plugins";
    process_.emplace(
        testbed_.spawn({programs / program_, testbed_.directory() / "device-plugins", resource_, program_, own_}));
  }
  void kill() { process_.reset(); }
  /// It does not answer Allocate until this ends.
  void hold(bool on) const {
    if (on)
      testbed::replace_file(own_ / "hold", "");
    else
      fs::remove(own_ / "hold");
  }
  [[nodiscard]] std::vector<std::string> calls() const {
    std::vector<std::string> result;
    std::istringstream lines{testbed::try_read_file(own_ / "calls").value_or("")};
    for (std::string line; std::getline(lines, line);) result.push_back(line);
    return result;
  }

 private:
  Testbed& testbed_;
  std::string program_;
  std::string resource_;
  fs::path own_;
  std::optional<testbed::Process> process_;
};

/// A node without a kubelet, whose plugins evictd serves, and the way to start pods on it.
struct Node {
  Node() {
    choosy.set_devices("c1 Healthy\nc2 Healthy\nc3 Healthy\n");
    with_nodes.set_devices("n1 Healthy\n");
    start_agent();
    choosy.start();
    with_nodes.start();
    wait_until_admitted(3, 1);
    // Devices that nobody serves yet are asked for in vain, and keep no pod away.
    wait_until_rejected(4, 0);
    wait_until_rejected(0, 2);
    wait_until_admitted(3, 1);
  }

  void start_agent() {
    agent.emplace(testbed, Agent::Options{.thresholds = "evictionHard: {memory.available: 50Mi}",
                                          .keep_history = true,
                                          .sections = fmt::format("devicePlugins: {{directory: {}}}\n",
                                                                  (testbed.directory() / "device-plugins").native())});
  }

  [[nodiscard]] static std::string spec(int of_chosen, int of_nodes) {
    return fmt::format(R"({{"containers": [{{"name": "main", "resources": {{"limits": {{"{}": {}, "{}": {}}}, )"
                       R"("requests": {{"{}": {}, "{}": {}}}}}}}]}})",
                       chosen, of_chosen, nodes, of_nodes, chosen, of_chosen, nodes, of_nodes);
  }
  [[nodiscard]] evictd::v1::AdmitResponse answer(int of_chosen, int of_nodes) const {
    return agent->admit(R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "asked"}, "spec": )" +
                        spec(of_chosen, of_nodes) + "}");
  }
  [[nodiscard]] bool admits(int of_chosen, int of_nodes) const { return answer(of_chosen, of_nodes).admitted(); }
  void wait_until_admitted(int of_chosen, int of_nodes) const {
    testbed::wait_until("the devices are there", 60s, [&] {
      try {
        return admits(of_chosen, of_nodes);
      } catch (const std::exception&) {
        return false;  // it has not heard of the runtime's pods yet
      }
    });
  }
  void wait_until_rejected(int of_chosen, int of_nodes) const {
    testbed::wait_until("the devices are away", 60s, [&] { return !admits(of_chosen, of_nodes); });
  }

  [[nodiscard]] static testbed::PodSpec pod(const std::string& name, int of_chosen, int of_nodes) {
    return {.name = name,
            .uid = "uid-" + name,
            .qos = QosClass::BestEffort,
            .annotations = {{"evictd.io/pod-spec", spec(of_chosen, of_nodes)}},
            .containers = {{.args = {"hold", "8Mi"}}}};
  }

  /// What containerd says of a container, with all that it made it from.
  [[nodiscard]] std::string info(const testbed::RunningPod& pod) const {
    runtime::v1::ContainerStatusRequest request;
    request.set_container_id(pod.container());
    request.set_verbose(true);
    return testbed.cri().calls().ask<runtime::v1::ContainerStatusResponse>(request).info().at("info");
  }

  mutable Testbed testbed{{.node = {.memory_limit = 1024 * mebi}}};
  Plugin choosy{testbed, "choosy-plugin", chosen};
  Plugin with_nodes{testbed, "node-plugin", nodes};
  std::optional<Agent> agent;
};

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE(
    "a container gets through the proxy what the plugins of its devices want it to have, and again when it is made "
    "anew") {
  Node node;
  CriProxy proxy{node.testbed, {.undecided = "reject"}};
  const auto first = proxy.cri().run_pod(Node::pod("web", 2, 1));
  const auto info = node.info(first);
  CHECK((says(info, "CHOSEN=c2 c3") || says(info, "CHOSEN=c3 c2")));  // those that the plugin prefers
  CHECK(says(info, "NODES=n1"));
  CHECK(says(info, "/dev/evictd-n1"));
  CHECK(says(info, "/plugin-version"));
  CHECK(node.testbed.cri().container_status(first.container()).annotations().contains("example.com/chosen"));
  CHECK(node.choosy.calls().size() == 1);
  CHECK(node.with_nodes.calls() == std::vector<std::string>{"Allocate n1", "PreStartContainer n1"});

  auto again = Node::pod("web", 2, 1);
  again.attempt = 1;
  CHECK(says(node.info(proxy.cri().run_pod(again)), "NODES=n1"));
  CHECK(node.choosy.calls().size() == 1);
  CHECK(node.with_nodes.calls() ==
        std::vector<std::string>{"Allocate n1", "PreStartContainer n1", "PreStartContainer n1"});
  // What it has is nobody else's.
  CHECK(node.admits(1, 0));
  CHECK_FALSE(node.admits(2, 0));
  CHECK_FALSE(node.admits(0, 1));
}

TEST_CASE("a plugin may take longer than criProxy.timeout, and others start meanwhile") {
  Node node;
  CriProxy proxy{node.testbed, {.undecided = "reject"}};  // so what runs was admitted
  node.choosy.hold(true);
  auto started = std::async(std::launch::async, [&] { return proxy.cri().run_pod(Node::pod("slow", 1, 0)); });
  testbed::wait_until("the plugin is asked", 60s, [&] { return !node.choosy.calls().empty(); });
  const auto beside = proxy.cri().run_pod(Node::pod("beside", 0, 1));
  CHECK(node.testbed.cri().is_running(beside));
  std::this_thread::sleep_for(testbed::patient(3s));
  node.choosy.hold(false);
  CHECK(says(node.info(started.get()), "CHOSEN=c3"));
}

TEST_CASE("devices that pods have are theirs after evictd was killed; its plugins register again") {
  Node node;
  {
    CriProxy proxy{node.testbed, {.undecided = "reject"}};
    static_cast<void>(proxy.cri().run_pod(Node::pod("web", 2, 0)));
  }
  node.agent->process().kill();
  node.start_agent();
  node.wait_until_admitted(1, 1);
  CHECK_FALSE(node.admits(2, 0));
  CriProxy proxy{node.testbed, {.undecided = "reject"}};
  auto again = Node::pod("web", 2, 0);
  again.attempt = 1;
  const auto info = node.info(proxy.cri().run_pod(again));
  CHECK((says(info, "CHOSEN=c2 c3") || says(info, "CHOSEN=c3 c2")));
  CHECK(node.choosy.calls().size() == 1);
}

TEST_CASE(
    "no pod gets in without the devices that it asks for where their plugin is not back after evictd was killed") {
  Node node;
  testbed::wait_until("the resources are written", 60s, [&] {
    const auto text = testbed::try_read_file(node.testbed.directory() / "allocations.json").value_or("");
    return says(text, chosen) && says(text, nodes);
  });
  node.choosy.kill();
  node.agent->process().kill();
  node.start_agent();
  node.wait_until_admitted(0, 1);
  CHECK_FALSE(node.admits(1, 0));
  node.choosy.start();
  node.wait_until_admitted(1, 1);
}

TEST_CASE(
    "a device that is not healthy is given to nobody, nor are those of a plugin that was killed, until it is back") {
  Node node;
  node.choosy.set_devices("c1 Healthy\nc2 Unhealthy\nc3 Healthy\n");
  node.wait_until_rejected(3, 1);
  const auto answer = node.answer(2, 1);
  CHECK_MESSAGE(answer.admitted(), answer.message());
  node.choosy.set_devices("c1 Healthy\nc2 Healthy\nc3 Healthy\n");
  node.wait_until_admitted(3, 1);

  node.choosy.kill();
  node.wait_until_rejected(1, 0);
  CHECK(node.admits(0, 1));  // the other one's affair
  node.choosy.start();
  node.wait_until_admitted(3, 1);
}

}  // namespace integration::device_plugins_test
