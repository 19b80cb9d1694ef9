#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/agent_configuration.hpp"
#include "kubelet/configuration.hpp"

// What the configuration leaves open is looked for where nodes usually have it, so that evictd without arguments fits
// the node it is started on. Everything is looked up once, at the start; but what was not there yet is looked for
// again, and so is the runtime once a kubelet names another (app/place_watch.hpp).

namespace evictd::app {

/// The KubeletConfiguration of whatever set the node up: kubeadm, k0s, and the images of the large clouds. Absent: none
/// of them. All paths here lie below `root`, which is "/" but in tests.
[[nodiscard]] std::optional<std::string> find_kubelet_configuration(const std::filesystem::path& root = "/");

/// The directory in which device plugins look for a kubelet: "" where the node may be a kubelet's (may_be_kubelets),
/// and where there is no such directory, as on a node that has none of them.
[[nodiscard]] std::string find_device_plugins(bool is_kubelets, const std::filesystem::path& root = "/");

/// The names that node.podsCgroup may stand for: itself, or where it is "auto" those by either cgroup driver.
[[nodiscard]] std::vector<std::string> pods_cgroup_names(const std::string& setting);

/// The cgroup driver of the runtime at this endpoint: "systemd" or "cgroupfs"; absent where it does not say.
using AskCgroupDriver = std::function<std::optional<std::string>(const std::string& endpoint)>;

/// Where nothing was there yet, and a place was taken where it may be.
struct Guesses {
  bool endpoint = false;     ///< cri.endpoint: nobody says where, and there is none of the usual sockets
  bool pods_cgroup = false;  ///< node.podsCgroup: there is none of either cgroup driver's

  [[nodiscard]] bool any() const { return endpoint || pods_cgroup; }
};

/// Under which the kubelet says where its runtime listens.
inline constexpr std::string_view endpoint_key = "containerRuntimeEndpoint";

/// Where the kubelet says that its runtime listens, "unix:///PATH", whether or not that socket is there yet. Absent: it
/// says nothing, or nothing that evictd speaks, or evictd cri-proxy's own socket.
[[nodiscard]] std::optional<std::string> told_endpoint(const kubelet::Configuration& kubelet,
                                                       const config::AgentConfiguration& agent);

/// What was found in place of each "auto" that stands for a place.
struct Discovery {
  config::AgentConfiguration agent;    ///< without such an "auto", and with the pods' logs
  std::vector<std::string> remarks{};  ///< a line each: the key, what holds, and why
  Guesses guesses{};
};

/// `cri.endpoint`: told_endpoint(), whether or not that socket is there yet; where the kubelet says nothing,
/// the first socket of those that distributions of containerd listen on; if there is none yet, containerd's own place.
/// `node.podsCgroup`: "kubepods" or "kubepods.slice", by which of them is there; where both or neither are, by the
/// runtime's cgroup driver, which today's kubelets go by, too; where it does not say, by the KubeletConfiguration's
/// cgroupDriver.
/// Where the containers' logs are: the KubeletConfiguration's podLogsDir.
[[nodiscard]] Discovery discover(config::AgentConfiguration agent, const kubelet::Configuration& kubelet,
                                 const AskCgroupDriver& ask, const std::filesystem::path& root = "/");

}  // namespace evictd::app
