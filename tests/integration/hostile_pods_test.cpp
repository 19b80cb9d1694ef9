// Pods whose names, annotations and files were chosen by somebody who means ill.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "evictctl.hpp"
#include "testbed/agent.hpp"
#include "testbed/channel.hpp"
#include "testbed/cri_proxy.hpp"
#include "testbed/failure.hpp"
#include "testbed/programs.hpp"
#include "testbed/wait.hpp"
#include "victims.hpp"

namespace integration::hostile_pods_test {

using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::v1::Event;
using testbed::Agent;
using testbed::CriProxy;
using testbed::Testbed;

namespace {

/// As the default has it; the testbed trusts everybody otherwise.
constexpr auto only_the_system = "podSources: {trustedNamespaces: [kube-system]}\n";

constexpr auto critical_spec =
    R"({"priority": 2000001000, "priorityClassName": "system-node-critical", "containers": [{"name": "main"}]})";

/// Everything by which a pod could say that it must not go.
testbed::PodSpec pretender(std::string name_space, std::vector<std::string> load) {
  return {.name = "hog",
          .name_space = std::move(name_space),
          .qos = QosClass::BestEffort,
          .priority = 2'000'001'000,
          .labels = {{"evictd.io/priority-class", "system-node-critical"}},
          .annotations = {{"kubernetes.io/config.source", "file"},
                          {"kubernetes.io/config.hash", "0123456789abcdef"},
                          {"kubernetes.io/config.mirror", "0123456789abcdef"},
                          {"evictd.io/priority-class", "system-node-critical"},
                          {"evictd.io/pod-spec", critical_spec}},
          .containers = {{.args = std::move(load)}}};
}

Agent::Options guard() {
  return {.thresholds = "evictionHard: {memory.available: 300Mi}", .sections = only_the_system};
}

/// No request fits beside what runs.
testbed::PodSpec holder() {
  return {.name = "holder",
          .qos = QosClass::Burstable,
          .containers = {{.args = {"hold", "16Mi"}, .memory_request = 500 * mebi}}};
}

/// What it says of itself is not believed everywhere; what it is made with is the same.
testbed::PodSpec asking(std::string name_space) {
  auto spec = pretender(std::move(name_space), {"hold", "16Mi"});
  spec.qos = QosClass::Burstable;
  spec.containers.at(0).memory_request = 500 * mebi;
  spec.annotations["evictd.io/pod-spec"] =
      R"({"priorityClassName": "system-node-critical", )"
      R"("containers": [{"name": "main", "resources": {"requests": {"memory": "500Mi"}}}]})";
  return spec;
}

}  // namespace

TEST_CASE("a hog that says it is critical, static and a mirror pod goes, unless its namespace is trusted") {
  Testbed testbed{gibi_node};
  // As important as a user may call a pod, and as the hog counts where it is not believed.
  const auto modest =
      testbed.cri().run_pod(integration::pod("modest", QosClass::BestEffort, {"hold", "16Mi"}, 1'000'000'000));
  Agent agent{testbed, guard()};
  SUBCASE("default") {
    const auto hog = testbed.cri().run_pod(pretender("default", {"grow", "16Mi", "200Mi/s", "800Mi"}));
    const auto intended = agent.events().wait_for(Event::EVICTION_INTENDED, "default/hog", 60s);
    CHECK(intended.eviction_intended().ranking(0).priority() == 1'000'000'000);
    CHECK_FALSE(intended.eviction_intended().ranking(0).critical());
    static_cast<void>(agent.events().wait_for(Event::CLEANUP_DONE, "default/hog", 120s));
    testbed::wait_until("nothing of the hog is left", 60s, [&] { return nothing_left(testbed, hog); });
    CHECK(testbed.cri().is_running(modest));
    const auto told = std::string("pod default/hog: says by its annotations or labels that it is critical");
    agent.process().wait_until_says(told);
    const auto log = agent.process().errors();
    CHECK(log.find(told) == log.rfind(told));
    CHECK(log.contains("podSources.trustedNamespaces"));
  }
  SUBCASE("kube-system") {
    const auto hog = testbed.cri().run_pod(pretender("kube-system", {"grow", "16Mi", "200Mi/s", "800Mi"}));
    // Somebody else goes in its stead, and then there is nobody.
    static_cast<void>(agent.events().wait_for(Event::CLEANUP_DONE, "default/modest", 120s));
    static_cast<void>(agent.events().wait_for(Event::EVICTION_FAILED, "", 60s));
    CHECK(testbed.cri().is_running(hog));
    CHECK_FALSE(agent.events().has(Event::EVICTION_INTENDED, "kube-system/hog"));
    CHECK_FALSE(agent.process().errors().contains("is not believed"));
  }
}

TEST_CASE("a pod that says it is critical preempts others only where its namespace is trusted") {
  Testbed testbed{gibi_node};
  const auto there = testbed.cri().run_pod(holder());
  Agent agent{testbed, guard()};
  agent.wait_for_pods(1);
  CriProxy proxy{testbed, {.undecided = "reject"}};

  try {
    static_cast<void>(proxy.cri().run_pod(asking("default")));
    FAIL("the pod was admitted");
  } catch (const testbed::Failure& failure) {
    CHECK(std::string(failure.what()).contains("OutOfmemory"));
  }
  CHECK(testbed.cri().is_running(there));
  CHECK_FALSE(agent.events().has(Event::EVICTION_INTENDED, "default/holder"));
  agent.process().wait_until_says("pod default/hog: says by its annotations");

  static_cast<void>(proxy.cri().run_pod(asking("kube-system")));
  const auto preempted = agent.events().wait_for(Event::EVICTION_INTENDED, "default/holder", 60s);
  CHECK(preempted.eviction_intended().reason() == "Preempting");
}

TEST_CASE("pods with names that lead elsewhere, or are not fit to be shown, harm nobody and go like others") {
  Testbed testbed{gibi_node};
  const auto outside = testbed.directory() / "secret";
  std::filesystem::create_directories(outside / "volumes/kubernetes.io~empty-dir/v");
  const auto kubelet = testbed.directory() / "kubelet";
  std::filesystem::create_directories(kubelet / "pods");
  auto options = guard();
  options.kubelet = fmt::format("podLogsDir: {}\n", (testbed.directory() / "logs").native());
  options.node = fmt::format("kubeletRoot: {}", kubelet.native());
  Agent agent{testbed, options};

  const std::string escape = "\x1b[2J\x1b]0;owned\x07";
  auto hostile = integration::pod("x\nEVICTD_OUTCOME=done\r" + escape + "\u202e<script>alert(1)</script>",
                                  QosClass::BestEffort, {"grow", "16Mi", "200Mi/s", "800Mi"});
  hostile.name_space = "../../etc";
  hostile.annotations = {{"evictd.io/priority", escape}, {"evictd.io/pod-spec", "{\"a\": \"" + escape}};
  hostile.labels = {{"evictd.io/priority-class", "\u202e" + escape}};
  const auto hog = testbed.cri().run_pod(hostile);

  const auto intended = agent.events().wait_for(Event::EVICTION_INTENDED, hostile.name_space + "/" + hostile.name, 60s);
  CHECK(intended.pod().name() == hostile.name);
  static_cast<void>(agent.events().wait_for(Event::CLEANUP_DONE, hostile.name_space + "/" + hostile.name, 120s));
  testbed::wait_until("nothing of the hog is left", 60s, [&] { return nothing_left(testbed, hog); });
  CHECK(std::filesystem::exists(outside / "volumes/kubernetes.io~empty-dir/v"));

  const auto is_plain = [](const std::string& text) {
    return std::ranges::none_of(text, [](unsigned char c) { return c != '\n' && (c < 0x20 || c == 0x7f); }) &&
           !text.contains("\u202e");
  };
  CHECK(is_plain(agent.process().errors()));
  CHECK_FALSE(agent.process().errors().contains("\nEVICTD_OUTCOME=done"));
  for (const auto* format : {"table", "json", "yaml"}) {
    CAPTURE(format);
    for (const auto* command : {"events", "pods", "status"}) {
      CAPTURE(command);
      auto client = testbed.spawn({testbed::evictctl_program(), "--address", agent.address(), command, "-o", format});
      REQUIRE(client.wait(60s) == 0);
      CHECK(is_plain(client.output()));
    }
  }
}

}  // namespace integration::hostile_pods_test
