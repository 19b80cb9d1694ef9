#include "app/discovery.hpp"

#include <doctest/doctest.h>

#include "fixture/node_tree.hpp"
#include "fixture/tree.hpp"

namespace evictd::app::discovery_test {
namespace {

using fixture::dir;
using fixture::file;
using fixture::Tree;

config::AgentConfiguration agent_on(const Tree& tree) {
  config::AgentConfiguration agent;
  agent.node = fixture::settings_for(tree);
  agent.node.pods_cgroup = config::to_be_found;
  return agent;
}

fixture::Entry socket_at(std::vector<std::string> directories, const char* name = "containerd.sock") {
  auto entry = file(name, "");
  for (auto name_of = directories.rbegin(); name_of != directories.rend(); ++name_of) entry = dir(*name_of, {entry});
  return entry;
}

std::string endpoint_on(const Tree& tree, const kubelet::Configuration& kubelet = {}) {
  return discover(agent_on(tree), kubelet, {}, tree.path("")).agent.cri.endpoint;
}

constexpr fixture::Machine machine{.total = 4 << 20, .free = 2 << 20, .available = 2 << 20};

struct Drivers {
  std::string kubelets = "cgroupfs";
  std::optional<std::string> runtimes{};
};

Discovery discover_pods_cgroup(std::vector<fixture::Entry> cgroups, const Drivers& drivers) {
  const Tree tree{fixture::v2_node(machine, 0, std::move(cgroups))};
  kubelet::Configuration kubelet;
  kubelet.values.cgroup_driver = drivers.kubelets;
  return discover(agent_on(tree), kubelet, [&](const std::string&) { return drivers.runtimes; }, tree.path(""));
}

std::string pods_cgroup_among(std::vector<fixture::Entry> cgroups, const std::string& driver = "cgroupfs") {
  return discover_pods_cgroup(std::move(cgroups), {.kubelets = driver}).agent.node.pods_cgroup;
}

}  // namespace

TEST_CASE("containerd's socket is found where distributions have it") {
  CHECK(endpoint_on(Tree{socket_at({"run", "k3s", "containerd"})}) == "unix:///run/k3s/containerd/containerd.sock");
  CHECK(endpoint_on(Tree{socket_at({"run", "k0s"})}) == "unix:///run/k0s/containerd.sock");
  CHECK(endpoint_on(Tree{dir("run", {socket_at({"containerd"}), socket_at({"k0s"})})}) ==
        "unix:///run/containerd/containerd.sock");
}

TEST_CASE("where no socket is there yet, containerd's own place is assumed, and that is said") {
  const Tree tree{dir("run")};
  const auto discovery = discover(agent_on(tree), {}, {}, tree.path(""));
  CHECK(discovery.agent.cri.endpoint == "unix:///run/containerd/containerd.sock");
  REQUIRE(discovery.remarks.size() == 2);
  CHECK(discovery.remarks[0] ==
        "cri.endpoint: unix:///run/containerd/containerd.sock (there is none of the usual sockets yet; evictd waits "
        "for it)");
}

TEST_CASE("the KubeletConfiguration's runtime goes first, also while its socket is not there yet") {
  kubelet::Configuration kubelet;
  kubelet.values.container_runtime_endpoint = "unix:///srv/own.sock";
  CHECK(endpoint_on(Tree{dir("srv", {file("own.sock", "")})}, kubelet) == "unix:///srv/own.sock");
  const Tree tree{socket_at({"run", "containerd"})};
  CHECK(endpoint_on(tree, kubelet) == "unix:///srv/own.sock");
  kubelet.origins["containerRuntimeEndpoint"] = "/conf.d/00-k3s-defaults.conf:5";
  CHECK(discover(agent_on(tree), kubelet, {}, tree.path("")).remarks.at(0) ==
        "cri.endpoint: unix:///srv/own.sock (/conf.d/00-k3s-defaults.conf:5 says so; it is not there yet, and evictd "
        "waits for it)");
  kubelet.values.container_runtime_endpoint = "/srv/own.sock";  // as MicroK8s has it
  CHECK(endpoint_on(tree, kubelet) == "unix:///srv/own.sock");
  kubelet.values.container_runtime_endpoint = "unix:/srv/own.sock";
  CHECK(endpoint_on(tree, kubelet) == "unix:///srv/own.sock");

  // With what nobody can go by evictd could not start.
  kubelet.values.container_runtime_endpoint = "unix://srv/own.sock";
  CHECK(endpoint_on(tree, kubelet) == "unix:///run/containerd/containerd.sock");

  // Behind evictd cri-proxy is another one.
  kubelet.values.container_runtime_endpoint = "unix:///run/evictd/cri.sock";
  CHECK(endpoint_on(tree, kubelet) == "unix:///run/containerd/containerd.sock");

  // What is written counts even where it is the default, and says nothing where it is empty (kubeadm).
  const Tree k0s{socket_at({"run", "k0s"})};
  kubelet.values.container_runtime_endpoint = config::KubeletConfiguration{}.container_runtime_endpoint;
  CHECK(endpoint_on(k0s, kubelet) == "unix:///run/containerd/containerd.sock");
  kubelet.values.container_runtime_endpoint.clear();
  CHECK(endpoint_on(k0s, kubelet) == "unix:///run/k0s/containerd.sock");
}

TEST_CASE("the pods' cgroup is the one that is there, whatever driver made it") {
  const auto pods = dir("kubepods", fixture::v2_memory({}));
  const auto slice = dir("kubepods.slice", fixture::v2_memory({}));
  CHECK(pods_cgroup_among({pods}) == "kubepods");
  CHECK(pods_cgroup_among({pods}, "systemd") == "kubepods");
  CHECK(pods_cgroup_among({slice}) == "kubepods.slice");
  CHECK(pods_cgroup_among({pods, slice}, "systemd") == "kubepods.slice");
  CHECK(pods_cgroup_among({pods, slice}) == "kubepods");
  CHECK(pods_cgroup_among({}) == "kubepods");
  CHECK(pods_cgroup_among({}, "systemd") == "kubepods.slice");
}

TEST_CASE("where the machine does not show the cgroup driver the runtime is asked before the kubelet's file is") {
  const auto pods = dir("kubepods", fixture::v2_memory({}));
  const auto slice = dir("kubepods.slice", fixture::v2_memory({}));
  const Drivers differ{.kubelets = "cgroupfs", .runtimes = "systemd"};
  const auto none_yet = discover_pods_cgroup({}, differ);
  CHECK(none_yet.agent.node.pods_cgroup == "kubepods.slice");
  CHECK(none_yet.remarks.back() ==
        "node.podsCgroup: kubepods.slice (no pods' cgroup is there yet, and the runtime's cgroup driver decides)");
  CHECK(discover_pods_cgroup({pods, slice}, differ).agent.node.pods_cgroup == "kubepods.slice");
  CHECK(discover_pods_cgroup({pods, slice}, {.kubelets = "systemd", .runtimes = "cgroupfs"}).agent.node.pods_cgroup ==
        "kubepods");
  // What is there was made by whoever makes the pods' cgroups.
  CHECK(discover_pods_cgroup({pods}, differ).agent.node.pods_cgroup == "kubepods");
}

TEST_CASE("the pods' logs are where the kubelet has them") {
  const Tree tree{dir("run")};
  const auto logs = [&](const std::string& kubelets) {
    kubelet::Configuration kubelet;
    kubelet.values.pod_logs_dir = kubelets;
    return discover(agent_on(tree), kubelet, {}, tree.path("")).agent.node.pod_logs_dir;
  };
  CHECK(logs(config::KubeletConfiguration{}.pod_logs_dir) == "/var/log/pods");
  CHECK(logs("/data/logs") == "/data/logs");
  CHECK(logs("") == "/var/log/pods");  // the kubelet takes it for unset
}

TEST_CASE("what the configuration says is not looked for") {
  const Tree tree{socket_at({"run", "k0s"})};
  auto agent = agent_on(tree);
  agent.cri.endpoint = "unix:///run/mine.sock";
  agent.node.pods_cgroup = "mine";
  const auto discovery = discover(agent, {}, {}, tree.path(""));
  CHECK(discovery.agent.cri.endpoint == "unix:///run/mine.sock");
  CHECK(discovery.agent.node.pods_cgroup == "mine");
  CHECK(discovery.remarks.empty());
}

TEST_CASE("a KubeletConfiguration is found where whatever set the node up has put it") {
  CHECK_FALSE(find_kubelet_configuration(Tree{dir("var")}.path("")));
  const Tree tree{dir("etc", {dir("kubernetes", {dir("kubelet", {file("config.json", "{}")})})})};
  CHECK(find_kubelet_configuration(tree.path("")) == tree.path("etc/kubernetes/kubelet/config.json").native());
}

TEST_CASE("device plugins are served where their directory is, unless a kubelet runs") {
  const Tree tree{dir("var", {dir("lib", {dir("kubelet", {dir("device-plugins")})})})};
  CHECK(find_device_plugins(false, tree.path("")) == "/var/lib/kubelet/device-plugins");
  CHECK(find_device_plugins(true, tree.path("")) == "");
  CHECK(find_device_plugins(false, Tree{dir("var")}.path("")) == "");
}

}  // namespace evictd::app::discovery_test
