#include <doctest/doctest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "app/api_server.hpp"
#include "config/agent_configuration.hpp"
#include "fixture/program.hpp"
#include "fixture/tree.hpp"

namespace evictd::commands::check_test {
namespace {

namespace json = boost::json;

/// Runs `evictd check` on a KubeletConfiguration with these fields, through the real program. The output is what it
/// printed, or where it failed what it complained of: a library may say a word on stderr beside a result.
struct Checked {
  std::string output;
  int exit_code = -1;

  explicit Checked(const std::string& fields, std::vector<std::string> arguments = {"-o", "json"}) {
    const fixture::Tree tree{{fixture::file(
        "kubelet.yaml", "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n" + fields)}};
    arguments.insert(arguments.begin(), {"check", "--kubelet-config", tree.path("kubelet.yaml").native()});
    const auto outcome = fixture::run_evictd(arguments);
    exit_code = outcome.exit_code;
    output = exit_code == 0 ? outcome.out : outcome.err;
  }
};

}  // namespace

TEST_CASE("check prints the effective thresholds as JSON, in the order in which they act") {
  const Checked checked{
      "evictionHard: {memory.available: 150Mi, nodefs.available: 10%}\n"
      "evictionSoft: {memory.available: 1.5Gi}\nevictionSoftGracePeriod: {memory.available: 90s}\n"
      "evictionMinimumReclaim: {nodefs.available: 5%, memory.available: '0'}\n"};
  REQUIRE(checked.exit_code == 0);
  auto thresholds = json::parse(checked.output).at("thresholds").as_array();
  REQUIRE(thresholds.size() == 4);
  for (const auto& threshold : thresholds)
    CHECK(threshold.at("origin").as_string().find("kubelet.yaml:") != json::string::npos);
  CHECK(thresholds[1].at("origin").as_string().ends_with("kubelet.yaml:4"));
  thresholds[0].as_object().erase("origin");
  CHECK(thresholds[0] == json::parse(R"({"signal": "memory.available", "operator": "LessThan",
    "value": {"quantity": "150Mi", "bytes": 157286400}, "gracePeriodSeconds": 0, "minReclaim": {"quantity": "0"},
    "source": "evictionHard"})"));
  CHECK(thresholds[1].at("gracePeriodSeconds") == 90);
  CHECK(thresholds[1].at("value").at("quantity") == "1536Mi");
  CHECK(thresholds[1].at("source") == "evictionSoft");
  CHECK(thresholds[2].at("signal") == "allocatableMemory.available");
  CHECK(thresholds[3].at("value") == json::parse(R"({"percentage": 0.1})"));
  CHECK(thresholds[3].at("minReclaim") == json::parse(R"({"percentage": 0.05})"));
}

TEST_CASE(
    "check says why a threshold is there that nobody wrote: the copy for the pods' own cgroup for its original's "
    "reason") {
  const Checked checked{"evictionMaxPodGracePeriod: 10\n"};
  REQUIRE(checked.exit_code == 0);
  const auto thresholds = json::parse(checked.output).at("thresholds").as_array();
  const auto copy = std::ranges::find_if(
      thresholds, [](const auto& each) { return each.at("signal") == "allocatableMemory.available"; });
  REQUIRE(copy != thresholds.end());
  CHECK(copy->at("origin") == "the kubelet's default");
}

TEST_CASE("check prints in what order pods end when the node shuts down") {
  const Checked checked{"shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 10s\n"};
  REQUIRE(checked.exit_code == 0);
  CHECK(json::parse(checked.output).at("shutdown") == json::parse(R"([
    {"priority": 0, "gracePeriodSeconds": 20}, {"priority": 2000000000, "gracePeriodSeconds": 10}])"));
  CHECK(Checked{"shutdownGracePeriodCriticalPods: 10s\n"}.exit_code == 2);
}

TEST_CASE("check says what the host offers, and what does not work without what it lacks") {
  const Checked checked{"evictionHard: {}\n"};
  REQUIRE(checked.exit_code == 0);
  const auto host = json::parse(checked.output).at("host");
  CHECK(host.at("cgroups").as_string().starts_with("cgroup v"));
  const auto& memory = host.at("memoryAvailable");
  CHECK(memory.at("rule").as_string().starts_with("workingSet: capacity less what is used"));
  for (const auto* rule : {"workingSet", "memFree", "memAvailable"}) CHECK(memory.at(rule).as_int64() > 0);
  std::vector<std::string> names;
  for (const auto& offer : host.at("offers").as_array()) {
    names.emplace_back(offer.at("name").as_string());
    CHECK(offer.at("available").as_bool() == offer.at("consequence").as_string().empty());
  }
  CHECK(names == std::vector<std::string>{"memcg thresholds", "memory.events", "memory.high", "PSI", "fanotify",
                                          "pidfd", "process_mrelease", "cgroup.kill", "logind", "self-test",
                                          "kernel-log", "oom-steering", "container runtime"});
}

TEST_CASE("check refuses a wrong configuration with 2 and one line") {
  const Checked checked{"evictionSoft: {memory.available: 1Gi}\n"};
  CHECK(checked.exit_code == 2);
  CHECK(checked.output.find("kubelet.yaml:") != std::string::npos);
  CHECK(checked.output.find("memory.available: a soft threshold needs a grace period") != std::string::npos);
  CHECK(checked.output.find('\n') == checked.output.size() - 1);
}

TEST_CASE("check prints keys where they stand in the file, and refuses sources that cannot be made") {
  const fixture::Tree tree{
      {fixture::file("good",
                     "apiVersion: evictd.io/v1alpha1\nkind: AgentConfiguration\n"
                     "podSources: {kubelet: {url: \"http://127.0.0.1:10255\"}}\n"),
       fixture::file("bad",
                     "apiVersion: evictd.io/v1alpha1\nkind: AgentConfiguration\n"
                     "podSources: {apiServer: true}\nkubernetes: {kubeconfig: /nowhere/config}\n")}};
  const Checked good{"evictionHard: {}\n", {"-o", "json", "--config", tree.path("good").native()}};
  REQUIRE(good.exit_code == 0);
  const auto sources = json::parse(good.output).at("agent").at("podSources");
  CHECK(sources.at("kubelet").at("url") == "http://127.0.0.1:10255");
  CHECK(sources.at("apiServer") == "false");
  const Checked bad{"evictionHard: {}\n", {"--config", tree.path("bad").native()}};
  CHECK(bad.exit_code == 2);
  CHECK(bad.output.find("podSources.apiServer: /nowhere/config: cannot be read") != std::string::npos);
}

TEST_CASE("check refuses reports to an API server that nobody can reach") {
  const fixture::Tree tree{{fixture::file("status",
                                          "apiVersion: evictd.io/v1alpha1\nkind: AgentConfiguration\n"
                                          "kubernetes: {report: status, kubeconfig: /nowhere/config}\n"),
                            fixture::file("taints",
                                          "apiVersion: evictd.io/v1alpha1\nkind: AgentConfiguration\n"
                                          "kubernetes: {nodeConditions: taints, kubeconfig: /nowhere/config}\n")}};
  const Checked status{"evictionHard: {}\n", {"--config", tree.path("status").native()}};
  CHECK(status.exit_code == 2);
  CHECK(status.output.find("kubernetes.report: /nowhere/config: cannot be read") != std::string::npos);
  const Checked taints{"evictionHard: {}\n", {"--config", tree.path("taints").native()}};
  CHECK(taints.exit_code == 2);
  CHECK(taints.output.find("kubernetes.nodeConditions: /nowhere/config: cannot be read") != std::string::npos);
}

TEST_CASE("check refuses a group of the API that the machine does not have, and so does a start") {
  const fixture::Tree tree{{fixture::file("agent.yaml",
                                          "apiVersion: evictd.io/v1alpha1\nkind: AgentConfiguration\n"
                                          "api: {group: no-such-group}\n"),
                            fixture::file("numbered.yaml",
                                          "apiVersion: evictd.io/v1alpha1\nkind: AgentConfiguration\n"
                                          "api: {group: \"4711\"}\n")}};
  const Checked checked{"evictionHard: {}\n", {"--config", tree.path("agent.yaml").native()}};
  CHECK(checked.exit_code == 2);
  CHECK(checked.output.find("api.group: group \"no-such-group\": there is no such group on this machine") !=
        std::string::npos);
  CHECK(Checked{"evictionHard: {}\n", {"--config", tree.path("numbered.yaml").native()}}.exit_code == 0);
  config::AgentConfiguration settings;
  settings.api.group = "no-such-group";
  CHECK_FALSE(app::api_server_options(settings).has_value());
}

TEST_CASE("check prints YAML unless told otherwise") {
  const Checked checked{"evictionHard: {pid.available: 10%}\n", {}};
  CHECK(checked.exit_code == 0);
  CHECK(checked.output.find("  - signal: pid.available\n") != std::string::npos);
}

}  // namespace evictd::commands::check_test
