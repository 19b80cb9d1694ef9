#include "kubelet.hpp"

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <system_error>

#include "programs.hpp"
#include "testbed/cgroup_host.hpp"
#include "testbed/failure.hpp"
#include "testbed/files.hpp"
#include "testbed/wait.hpp"

namespace kubernetes {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

/// A kubelet sets these of the whole machine at its start. It gets a mount namespace in which they are files of its
/// own: $1 is a directory for them, the rest the kubelet's command. What it mounts below its root directory is seen by
/// containerd all the same, since that directory is shared.
constexpr auto with_own_sysctls = R"(
set -e
mount --make-private /proc
for name in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops \
            kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
  [ -e "/proc/sys/$name" ] || continue
  mkdir -p "$1/${name%/*}"
  cat "/proc/sys/$name" >"$1/$name"
  mount --bind "$1/$name" "/proc/sys/$name"
done
shift
exec "$@"
)";

/// On cgroup v1 a cpuset takes no process before it has processors and memory.
void fill_cpuset(const fs::path& cgroup) {
  for (const char* name : {"cpuset.cpus", "cpuset.mems"}) {
    const auto inherited = testbed::try_read_file(cgroup.parent_path() / name);
    if (inherited && fs::exists(cgroup / name)) testbed::write_file(cgroup / name, *inherited);
  }
}

}  // namespace

Kubelet::Kubelet(testbed::Testbed& testbed, const ControlPlane& control_plane, const Options& options)
    : testbed_{testbed},
      control_plane_{control_plane},
      directory_{testbed.directory() / "kubelet"},
      port_{free_port()},
      serving_{control_plane.authority().issue_server("kubelet")},
      kubeconfig_{control_plane.write_kubeconfig("kubelet", control_plane.node_token())} {
  for (const auto& directory : {root(), manifests(), directory_ / "sysctls"}) fs::create_directories(directory);
  make_cgroups();
  write_configuration(options.configuration);
  start();
}

Kubelet::~Kubelet() {
  testbed::report_failure([&] { stop(); });
}

/// The testbed's node has its cgroup where memory and process ids are counted; a kubelet wants it everywhere. It goes
/// with the node.
void Kubelet::make_cgroups() const {
  for (const auto& hierarchy : testbed::cgroup_host().hierarchies) {
    const auto node = hierarchy / testbed_.node().cgroup().substr(1);
    fs::create_directory(node);
    fill_cpuset(node);
  }
}

/// Device plugins have a fixed place in the machine's /var/lib/kubelet, which a kubelet clears at its start.
void Kubelet::write_configuration(const std::string& fields) const {
  testbed::replace_file(
      configuration(),
      fmt::format(R"(apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 127.0.0.1
port: {port}
healthzPort: 0
tlsCertFile: "{certificate}"
tlsPrivateKeyFile: "{key}"
authentication: {{anonymous: {{enabled: false}}, webhook: {{enabled: true}}}}
authorization: {{mode: Webhook}}
cgroupDriver: cgroupfs
cgroupRoot: {cgroup}
enforceNodeAllocatable: [pods]
staticPodPath: "{manifests}"
volumePluginDir: "{directory}/volume-plugins"
makeIPTablesUtilChains: false
failSwapOn: false
oomScoreAdj: 0
imageGCHighThresholdPercent: 100
featureGates: {{DevicePlugins: false}}
nodeStatusUpdateFrequency: 2s
syncFrequency: 5s
fileCheckFrequency: 1s
)",
                  fmt::arg("port", port_), fmt::arg("certificate", serving_.certificate.native()),
                  fmt::arg("key", serving_.key.native()), fmt::arg("cgroup", testbed_.node().cgroup()),
                  fmt::arg("manifests", manifests().native()), fmt::arg("directory", directory_.native())) +
          fields);
}

void Kubelet::start() {
  process_.emplace(testbed_.spawn({"unshare",
                                   "--mount",
                                   "--propagation",
                                   "unchanged",
                                   "sh",
                                   "-c",
                                   with_own_sysctls,
                                   "sh",
                                   directory_ / "sysctls",
                                   program("kubelet"),
                                   "--kubeconfig",
                                   kubeconfig_,
                                   "--config",
                                   configuration(),
                                   "--root-dir",
                                   root(),
                                   "--cert-dir",
                                   directory_ / "pki",
                                   "--hostname-override",
                                   node_name,
                                   "--container-runtime=remote",
                                   "--container-runtime-endpoint",
                                   testbed_.containerd().address()},
                                  {.output = log(), .errors = log()}));
  const ApiClient itself{server(), control_plane_.authority().certificate(), control_plane_.admin().token(),
                         directory_};
  testbed::wait_until("the kubelet is up and its node registered; its log is in " + log().native(), 120s, [&] {
    if (!process_->running()) testbed::fail("the kubelet ended:\n" + testbed::read_file(log()));
    const auto healthy = itself.try_send({.path = "/healthz"});
    if (!healthy || healthy->status != 200) return false;
    const auto node = control_plane_.admin().get(fmt::format("/api/v1/nodes/{}", node_name));
    return node.size("/status/conditions") > 0;
  });
}

void Kubelet::stop() {
  process_->signal(SIGTERM);
  if (!process_->wait(10s)) process_->kill();
}

std::string Kubelet::server() const { return fmt::format("https://127.0.0.1:{}", port_); }

}  // namespace kubernetes
