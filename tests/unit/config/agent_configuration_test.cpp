#include "config/agent_configuration.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "config/agent_keys.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"

namespace evictd::config::agent_configuration_test {
namespace {

using namespace std::chrono_literals;
using fixture::error_of;
using fixture::file;
using fixture::Tree;
using fixture::value_of;

/// With the two lines that every document begins with.
Result<AgentConfiguration> parse(std::string_view body) {
  return parse_agent_configuration("apiVersion: evictd.io/v1alpha1\nkind: AgentConfiguration\n" + std::string(body),
                                   "agent.yaml");
}

}  // namespace

TEST_CASE("an empty document, and one with a header alone, give the defaults") {
  for (const auto& configuration : {value_of(parse_agent_configuration("", "agent.yaml")), value_of(parse("")),
                                    value_of(parse("node:\napi:\n  group:\n"))}) {
    CHECK(configuration.state_directory == "/var/lib/evictd");
    CHECK(configuration.runtime_directory == "/run/evictd");
    CHECK(configuration.node.cgroup_root == "/");
    CHECK(configuration.node.pods_cgroup == to_be_found);
    CHECK(configuration.node.memory_available == MemoryAvailable::WorkingSet);
    CHECK(configuration.cri.endpoint == to_be_found);
    CHECK(configuration.pod_sources.manifests.empty());
    CHECK_FALSE(configuration.pod_sources.api_server);
    CHECK(configuration.pod_sources.kubelet_url.empty());
    CHECK(configuration.kubernetes.report == PodReport::None);
    CHECK(configuration.kubernetes.node_conditions == NodeReport::None);
    CHECK(configuration.notifier.disable.empty());
    CHECK(configuration.notifier.v2 == MemoryOnV2::Tripwire);
    CHECK(configuration.notifier.fallback_interval == 10s);
    CHECK(configuration.eviction.cleanup_timeout == 30s);
    CHECK(configuration.admission.enforce == InKubeletsPlace::Auto);
    CHECK(configuration.log.level == LogLevel::Info);
  }
}

TEST_CASE("every key reaches its place") {
  const auto configuration = value_of(parse(R"(
stateDirectory: /data/state/
runtimeDirectory: /data/run
node:
  cgroupRoot: /lab/
  podsCgroup: kubepods.slice
  memoryAvailable: workingSet
  cgroupMount: /host/sys/fs/cgroup
  procMount: /host/proc
  kubeletRoot: /data/kubelet
  diskUsageInterval: 30s
cri:
  endpoint: unix:///tmp/c.sock
  timeout: 3s
podSources:
  manifests: /data/manifests/
  apiServer: true
  kubelet:
    url: https://127.0.0.1:10250/
    tokenFile: /data/token
    caFile: /data/ca.crt
  trustedNamespaces: [kube-system, storage-1]
kubernetes:
  nodeName: node1
  kubeconfig: /data/kubeconfig
  report: delete
  nodeConditions: taints
  startSpread: 1m
notifier:
  disable: [memcg, oom]
  v2: fence
  fallbackInterval: 250ms
eviction:
  cleanupTimeout: 1m
  stopTimeout: 4s
admission:
  enforce: on
api:
  group: evictd
  historyLimit: 10
  subscriberQueue: 11
log:
  level: debug
)"));
  CHECK(configuration.state_directory == "/data/state");
  CHECK(configuration.runtime_directory == "/data/run");
  CHECK(configuration.node.cgroup_root == "/lab");
  CHECK(configuration.node.pods_cgroup == "kubepods.slice");
  CHECK(configuration.node.cgroup_mount == "/host/sys/fs/cgroup");
  CHECK(configuration.node.proc_mount == "/host/proc");
  CHECK(configuration.node.kubelet_root == "/data/kubelet");
  CHECK(configuration.node.disk_usage_interval == 30s);
  CHECK(configuration.cri.endpoint == "unix:///tmp/c.sock");
  CHECK(configuration.cri.timeout == 3s);
  CHECK(configuration.pod_sources.manifests == "/data/manifests");
  CHECK(configuration.pod_sources.api_server);
  CHECK(configuration.pod_sources.kubelet_url == "https://127.0.0.1:10250");
  CHECK(configuration.pod_sources.kubelet_token_file == "/data/token");
  CHECK(configuration.pod_sources.kubelet_ca_file == "/data/ca.crt");
  CHECK(configuration.pod_sources.trusted_namespaces == std::vector<std::string>{"kube-system", "storage-1"});
  CHECK(configuration.kubernetes.node_name == "node1");
  CHECK(configuration.kubernetes.kubeconfig == "/data/kubeconfig");
  CHECK(configuration.kubernetes.report == PodReport::Delete);
  CHECK(configuration.kubernetes.node_conditions == NodeReport::Taints);
  CHECK(configuration.kubernetes.start_spread == 1min);
  CHECK(configuration.notifier.disable == std::vector{NotifierSource::Memcg, NotifierSource::Oom});
  CHECK(configuration.notifier.v2 == MemoryOnV2::Fence);
  CHECK(configuration.notifier.fallback_interval == 250ms);
  CHECK(configuration.eviction.cleanup_timeout == 1min);
  CHECK(configuration.eviction.stop_timeout == 4s);
  CHECK(configuration.admission.enforce == InKubeletsPlace::On);
  CHECK(configuration.api.group == "evictd");
  CHECK(configuration.api.history_limit == 10);
  CHECK(configuration.api.subscriber_queue == 11);
  CHECK(configuration.log.level == LogLevel::Debug);
}

TEST_CASE("an unknown key is an error that names the nearest known one") {
  CHECK(error_of(parse("notifier:\n  psiSom: 1s\n")) ==
        "agent.yaml:4: notifier.psiSom: unknown key; did you mean \"psiSome\"?");
  CHECK(error_of(parse("notifer:\n  v2: fence\n")) == "agent.yaml:3: notifer: unknown key; did you mean \"notifier\"?");
}

TEST_CASE("a key in the wrong section is shown its place") {
  CHECK(error_of(parse("cgroupRoot: /lab\n")) ==
        "agent.yaml:3: cgroupRoot: unknown key; did you mean \"node.cgroupRoot\"?");
  CHECK(error_of(parse("log:\n  endpoint: x\n")) ==
        "agent.yaml:4: log.endpoint: unknown key; did you mean \"cri.endpoint\"?");
}

TEST_CASE("a mapping within a section knows its keys") {
  CHECK(error_of(parse("podSources:\n  kubelet:\n    ulr: x\n")) ==
        "agent.yaml:5: podSources.kubelet.ulr: unknown key; did you mean \"url\"?");
  CHECK(error_of(parse("podSources:\n  kublet:\n    url: x\n")) ==
        "agent.yaml:4: podSources.kublet: unknown key; did you mean \"kubelet\"?");
  CHECK(error_of(parse("podSources:\n  kubelet: https://127.0.0.1:10250\n")) ==
        "agent.yaml:4: podSources.kubelet: \"https://127.0.0.1:10250\" stands where a mapping is expected");
  CHECK(error_of(parse("podSources:\n  xyzzy: 1\n")) ==
        "agent.yaml:4: podSources.xyzzy: unknown key; those known here are manifests, apiServer, "
        "trustedNamespaces, kubelet");
  for (const auto* dotted : {"podSources:\n  kubelet.url: http://x\n", "podSources.kubelet.url: http://x\n",
                             "podSources.manifests: /x\n", "podSources.kubelet:\n  url: http://x\n"})
    CHECK(error_of(parse(dotted)).find("unknown key") != std::string::npos);
  CHECK(parse("podSources:\n  kubelet:\n").has_value());
}

TEST_CASE("a key like no other is answered with those there are") {
  CHECK(error_of(parse("log:\n  xyz: 1\n")) == "agent.yaml:4: log.xyz: unknown key; those known here are level");
  CHECK(error_of(parse("xyzzy: 1\n")) ==
        "agent.yaml:3: xyzzy: unknown key; those known here are stateDirectory, runtimeDirectory, node, cri, "
        "podSources, kubernetes, notifier, eviction, kill, protection, thresholds, admission, devicePlugins, criProxy, "
        "shutdown, api, http, log");
}

TEST_CASE("a value that does not fit its key is named with file and line") {
  CHECK(error_of(parse("notifier: true\n")) == "agent.yaml:3: notifier: \"true\" stands where a mapping is expected");
  CHECK(error_of(parse("notifier:\n  fallbackInterval: 50ms\n")) ==
        "agent.yaml:4: notifier.fallbackInterval: \"50ms\" is out of range: 100ms to 5m0s");
  CHECK(error_of(parse("node:\n  memoryAvailable: free\n")) ==
        "agent.yaml:4: node.memoryAvailable: \"free\" is none of workingSet|memFree|memAvailable");
  CHECK(error_of(parse("api:\n  historyLimit: 0\n")) ==
        "agent.yaml:4: api.historyLimit: \"0\" is out of range: 1 to 1000000");
  CHECK(error_of(parse("cri:\n  timeout: 2\n")).starts_with("agent.yaml:4: cri.timeout: \"2\" lacks a unit"));
  CHECK(error_of(parse("log:\n  level: info\n  level: debug\n")) ==
        "agent.yaml:5: log.level: stands here a second time");
}

TEST_CASE("sources are disabled by the names that status has for them") {
  const auto notifier = [](const std::string& list) {
    return value_of(parse("notifier: {disable: " + list + "}\n")).notifier;
  };
  CHECK(notifier("[]").has(NotifierSource::Files));
  const auto two = notifier("[files, psi]");
  CHECK_FALSE(two.has(NotifierSource::Files));
  CHECK_FALSE(two.has(NotifierSource::Psi));
  CHECK(two.has(NotifierSource::Sampler));
  CHECK(notifier("memcg oom files sampler psi kernel-oom").disable.size() == 6);
  CHECK(error_of(parse("notifier:\n  disable: [files, timer]\n")) ==
        "agent.yaml:4: notifier.disable[1]: \"timer\" is none of memcg|oom|files|sampler|psi|kernel-oom");
  CHECK(error_of(parse("notifier:\n  disable: {files: true}\n")) ==
        "agent.yaml:4: notifier.disable: a mapping stands where a list is expected");
}

TEST_CASE("on cgroup v2 there is a tripwire beside the sampler, or a fence, or neither") {
  CHECK(value_of(parse("notifier: {v2: tripwire}\n")).notifier.v2 == MemoryOnV2::Tripwire);
  CHECK(value_of(parse("notifier: {v2: sampler}\n")).notifier.v2 == MemoryOnV2::Sampler);
  CHECK(error_of(parse("notifier: {v2: memoryHigh}\n")) ==
        "agent.yaml:3: notifier.v2: \"memoryHigh\" is none of tripwire|sampler|fence");
}

TEST_CASE("nothing is trimmed unless it is asked for") {
  CHECK(AgentConfiguration{}.eviction.trim == Trim::Off);
  CHECK(value_of(parse("eviction: {trim: off}\n")).eviction.trim == Trim::Off);
  CHECK(value_of(parse("eviction: {trim: cache}\n")).eviction.trim == Trim::Cache);
  CHECK(value_of(parse("eviction: {trim: all}\n")).eviction.trim == Trim::All);
  CHECK(error_of(parse("eviction: {trim: on}\n")) == "agent.yaml:3: eviction.trim: \"on\" is none of off|cache|all");
}

TEST_CASE("an upgraded node finds its files where they were") {
  const auto state = state_files({});
  CHECK(state.thresholds == "/var/lib/evictd/thresholds.yaml");
  CHECK(state.allocations == "/var/lib/evictd/allocations.json");
  CHECK(state.events == "/var/lib/evictd/events");
  const auto runtime = runtime_files({});
  CHECK(runtime.lock == "/run/evictd/lock");
  CHECK(runtime.state == "/run/evictd/state");
  CHECK(runtime.shutdown == "/run/evictd/shutdown.json");
  CHECK(runtime.kubelet_runtime == "/run/evictd/kubelet-runtime");
  CHECK(runtime.oom_scores == "/run/evictd/oom-scores");
  CHECK(runtime.socket == "/run/evictd/evictd.sock");
  CHECK(runtime.admin_socket == "/run/evictd/admin.sock");
  CHECK(runtime.cri_socket == "/run/evictd/cri.sock");
  CHECK(runtime.pressure_socket == "/run/evictd/pressure/pressure.sock");
}

TEST_CASE("files follow their directory, and without one for the state there are none") {
  const auto configuration = value_of(parse("stateDirectory: \"\"\nruntimeDirectory: /lab/run/\n"));
  CHECK(state_files(configuration).thresholds.empty());
  CHECK(state_files(configuration).allocations.empty());
  CHECK(state_files(configuration).events.empty());
  CHECK(runtime_files(configuration).admin_socket == "/lab/run/admin.sock");
  CHECK(runtime_files(configuration).socket.ends_with(longest_socket_name));
  CHECK(error_of(parse("runtimeDirectory: \"\"\n")) == "agent.yaml:3: runtimeDirectory: \"\" is not an absolute path");
}

TEST_CASE("trusted namespaces are names, all or none") {
  CHECK(AgentConfiguration{}.pod_sources.trusted_namespaces == std::vector<std::string>{"kube-system"});
  const auto trusted = [](const std::string& list) {
    return value_of(parse("podSources: {trustedNamespaces: " + list + "}\n")).pod_sources.trusted_namespaces;
  };
  CHECK(trusted("[]").empty());
  CHECK(trusted("[\"*\"]") == std::vector<std::string>{"*"});
  CHECK(trusted("ours theirs") == std::vector<std::string>{"ours", "theirs"});
  for (const auto* name : {"Kube-System", "a/b", "a*", "kube_system", "\"\\x1b\""}) {
    CAPTURE(name);
    CHECK(error_of(parse(std::string("podSources: {trustedNamespaces: [") + name + "]}\n")).ends_with("nor \"*\""));
  }
}

TEST_CASE("memAvailable speaks of the machine and is refused for a cgroup") {
  CHECK(error_of(parse("node:\n  memoryAvailable: memAvailable\n  cgroupRoot: /lab\n")) ==
        "agent.yaml:4: node.memoryAvailable: memAvailable is an estimate for the whole machine, not for the cgroup "
        "\"/lab\": "
        "use workingSet, or leave node.cgroupRoot at \"/\"");
  CHECK(value_of(parse("node:\n  memoryAvailable: memAvailable\n")).node.memory_available ==
        MemoryAvailable::MemAvailable);
}

TEST_CASE("another kind of document is refused") {
  CHECK(error_of(parse_agent_configuration("apiVersion: v1\nkind: Pod\n", "agent.yaml")) ==
        "agent.yaml:1: apiVersion: \"v1\" where \"evictd.io/v1alpha1\" is expected");
}

TEST_CASE("a file is named as it was given") {
  const Tree tree{file("agent.yaml", "apiVersion: evictd.io/v1alpha1\nkind: AgentConfiguration\nlog: {level: loud}\n")};
  const auto path = tree.path("agent.yaml").native();
  CHECK(error_of(load_agent_configuration(path)) == path + ":3: log.level: \"loud\" is none of error|warn|info|debug");
  CHECK(error_of(load_agent_configuration("/nowhere/agent.yaml")) ==
        "/nowhere/agent.yaml: cannot be read: No such file or directory");
}

TEST_CASE("the description lists every key once, with its default and its present value") {
  const auto configuration = value_of(parse("notifier:\n  fallbackInterval: 3s\n"));
  const auto keys = describe(configuration);
  std::set<std::string> paths;
  for (const auto& key : keys) {
    paths.insert(key.path);
    CHECK_FALSE(key.type.empty());
    CHECK(key.meaning.ends_with('.'));
  }
  CHECK(keys.size() == agent_keys().size());
  CHECK(paths.size() == keys.size());
  const auto fallback = std::ranges::find(keys, "notifier.fallbackInterval", &KeyDescription::path);
  REQUIRE(fallback != keys.end());
  CHECK(fallback->type == "duration, 100ms to 5m0s");
  CHECK(fallback->default_value == "10s");
  CHECK(fallback->value == "3s");
}

TEST_CASE("what the description prints can be written into a file and means the same") {
  std::string text;
  std::vector<std::string> sections;  // those that the line above stands in
  for (const auto& key : describe({})) {
    std::vector<std::string> parts;
    std::istringstream path(key.path);
    for (std::string part; std::getline(path, part, '.');) parts.push_back(part);
    for (std::size_t depth = 0; depth + 1 < parts.size(); ++depth) {
      if (depth < sections.size() && sections[depth] == parts[depth]) continue;
      sections.resize(depth);
      sections.push_back(parts[depth]);
      text += std::string(2 * depth, ' ') + parts[depth] + ":\n";
    }
    sections.resize(parts.size() - 1);
    const bool quoted = key.type.find("path") != std::string::npos || key.type == "text";
    text += std::string(2 * sections.size(), ' ') + parts.back() + ": " + (quoted ? '"' + key.value + '"' : key.value) +
            "\n";
  }
  for (const auto& key : describe(value_of(parse(text)))) CHECK(key.value == key.default_value);
}

}  // namespace evictd::config::agent_configuration_test
