#include "app/discovery.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <system_error>
#include <utility>

#include "cri/endpoint.hpp"
#include "node/cgroup.hpp"
#include "os/below_root.hpp"

namespace evictd::app {
namespace {

namespace fs = std::filesystem;
using os::below_root;

constexpr auto scheme = cri::endpoint_scheme;

// kubeadm; Amazon's images, as JSON; Google's; k0s.
constexpr std::array kubelet_configurations{"/var/lib/kubelet/config.yaml", "/etc/kubernetes/kubelet/config.json",
                                            "/etc/kubernetes/kubelet/kubelet-config.json",
                                            "/home/kubernetes/kubelet-config.yaml", "/var/lib/k0s/kubelet-config.yaml"};

// Everybody's; k3s and RKE2; k0s; MicroK8s.
constexpr std::array sockets{"/run/containerd/containerd.sock", "/run/k3s/containerd/containerd.sock",
                             "/run/k0s/containerd.sock", "/var/snap/microk8s/common/run/containerd.sock"};

constexpr std::string_view of_cgroupfs = "kubepods";
constexpr std::string_view of_systemd = "kubepods.slice";

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

struct Finding {
  std::string value;
  std::string why;
  bool is_guess = false;
};

/// What was told is taken before its socket is there: its runtime may start later than evictd, and another runtime's
/// socket would be no place to look for pods.
Finding find_endpoint(const config::AgentConfiguration& agent, const kubelet::Configuration& kubelet,
                      const fs::path& root) {
  if (auto told = told_endpoint(kubelet, agent)) {
    const auto origin = kubelet.origins.find(endpoint_key);
    auto why = fmt::format("{} says so", origin != kubelet.origins.end() ? origin->second : "the KubeletConfiguration");
    if (!is_there(below_root(root, told->substr(scheme.size()))))
      why += "; it is not there yet, and evictd waits for it";
    return {*std::move(told), std::move(why)};
  }
  const auto found =
      std::ranges::find_if(sockets, [&](const char* socket) { return is_there(below_root(root, socket)); });
  if (found == sockets.end())
    return {fmt::format("{}{}", scheme, sockets.front()), "there is none of the usual sockets yet; evictd waits for it",
            true};
  return {fmt::format("{}{}", scheme, *found), "found there"};
}

Finding find_pods_cgroup(const config::AgentConfiguration& agent, const config::KubeletConfiguration& kubelet,
                         const AskCgroupDriver& ask) {
  const auto& node = agent.node;
  const auto hierarchy = node::CgroupHierarchy::detect(node.cgroup_mount);
  const auto has = [&](std::string_view name) {
    return hierarchy.has_value() &&
           hierarchy->memory(fmt::format("{}/{}", node.cgroup_root == "/" ? "" : node.cgroup_root, name)).has_value();
  };
  const bool cgroupfs = has(of_cgroupfs);
  const bool systemd = has(of_systemd);
  if (cgroupfs != systemd) return {std::string(cgroupfs ? of_cgroupfs : of_systemd), "found there"};
  const auto runtimes = ask ? ask(agent.cri.endpoint) : std::nullopt;
  const auto why = [&](std::string_view decides) {
    return fmt::format("{}, and {} decides", cgroupfs ? "both kinds are there" : "no pods' cgroup is there yet",
                       decides);
  };
  const auto& driver = runtimes ? *runtimes : kubelet.cgroup_driver;
  return {std::string(driver == "systemd" ? of_systemd : of_cgroupfs),
          why(runtimes ? "the runtime's cgroup driver" : "the KubeletConfiguration's cgroupDriver"), !cgroupfs};
}

/// As the kubelet has it: an absolute path, or its default.
std::string find_pod_logs(const config::KubeletConfiguration& kubelet) {
  return kubelet.pod_logs_dir.starts_with('/') ? kubelet.pod_logs_dir : config::KubeletConfiguration{}.pod_logs_dir;
}

/// Whether it is a guess.
bool settle(std::string& setting, std::string_view key, Finding finding, std::vector<std::string>& remarks) {
  remarks.push_back(fmt::format("{}: {} ({})", key, finding.value, finding.why));
  setting = std::move(finding.value);
  return finding.is_guess;
}

}  // namespace

std::optional<std::string> find_kubelet_configuration(const fs::path& root) {
  for (const auto* place : kubelet_configurations)
    if (auto file = below_root(root, place); is_there(file)) return file;
  return std::nullopt;
}

std::string find_device_plugins(bool is_kubelets, const fs::path& root) {
  constexpr std::string_view usual = "/var/lib/kubelet/device-plugins";  // no kubelet has it elsewhere
  std::error_code ignored;
  const bool is_used = !is_kubelets && fs::is_directory(below_root(root, usual), ignored);
  return is_used ? std::string(usual) : std::string{};
}

std::optional<std::string> told_endpoint(const kubelet::Configuration& kubelet,
                                         const config::AgentConfiguration& agent) {
  const auto& told = kubelet.values.container_runtime_endpoint;
  const bool is_written =
      kubelet.origins.contains(endpoint_key) || told != fmt::format("{}{}", scheme, sockets.front());
  if (!is_written || told.ends_with(config::runtime_files(agent).cri_socket)) return std::nullopt;
  auto endpoint = cri::parse_endpoint(told);
  return endpoint ? std::optional{*std::move(endpoint)} : std::nullopt;
}

std::vector<std::string> pods_cgroup_names(const std::string& setting) {
  if (setting != config::to_be_found) return {setting};
  return {std::string(of_cgroupfs), std::string(of_systemd)};
}

Discovery discover(config::AgentConfiguration agent, const kubelet::Configuration& kubelet, const AskCgroupDriver& ask,
                   const fs::path& root) {
  Discovery discovery{.agent = std::move(agent)};
  auto& [settings, remarks, guesses] = discovery;
  if (settings.cri.endpoint == config::to_be_found)
    guesses.endpoint = settle(settings.cri.endpoint, "cri.endpoint", find_endpoint(settings, kubelet, root), remarks);
  if (settings.node.pods_cgroup == config::to_be_found)
    guesses.pods_cgroup =
        settle(settings.node.pods_cgroup, "node.podsCgroup", find_pods_cgroup(settings, kubelet.values, ask), remarks);
  settings.node.pod_logs_dir = find_pod_logs(kubelet.values);
  return discovery;
}

}  // namespace evictd::app
