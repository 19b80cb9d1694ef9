#include "testbed/containerd_config.hpp"

#include <fmt/format.h>

#include <sstream>
#include <string_view>

#include "testbed/failure.hpp"
#include "testbed/image.hpp"
#include "testbed/process.hpp"

namespace testbed {

namespace {

/// The plugins that are left out would only probe the machine for file systems it lacks, and take their time.
constexpr std::string_view general = R"(version = {version}
root = "{root}"
state = "{directory}/containerd-state"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs", "io.containerd.internal.v1.restart", "io.containerd.monitor.container.v1.restart",
  "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing", "io.containerd.nri.v1.nri",
]

[grpc]
address = "{socket}"
)";

/// Of CRI as containerd 1 has it: one plugin.
constexpr std::string_view cri_1 = R"(
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{pause}"
# Lowering oom_score_adj takes CAP_SYS_RESOURCE, which a container that is itself confined may lack.
restrict_oom_score_adj = true
disable_apparmor = true
# How often writable layers are measured, in seconds.
stats_collect_period = 1

[plugins."io.containerd.grpc.v1.cri".cni]
conf_dir = "{directory}/cni"
bin_dir = "{directory}/cni"
)";

/// And containerd 2: images and runtime are plugins of their own.
constexpr std::string_view cri_2 = R"(
[plugins."io.containerd.cri.v1.images"]
stats_collect_period = 1

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{pause}"

[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true
disable_apparmor = true

[plugins."io.containerd.cri.v1.runtime".cni]
conf_dir = "{directory}/cni"
bin_dirs = ["{directory}/cni"]
)";

constexpr std::string_view runtime_handler = R"(
[plugins."{plugin}".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."{plugin}".containerd.runtimes.runc.options]
SystemdCgroup = false
BinaryName = "{runc}"
Root = "{directory}/runc"
)";

}  // namespace

Version containerd_version() {
  // "containerd github.com/containerd/containerd/v2 2.1.9"
  static const auto version = [] {
    const auto said = run({"containerd", "--version"});
    std::istringstream words{said};
    std::string program;
    std::string package;
    char dot = 0;
    Version found;
    if (!(words >> program >> package >> found.major >> dot >> found.minor)) fail("containerd --version says " + said);
    return found;
  }();
  return version;
}

std::string containerd_config(const ContainerdPlaces& places, Version version) {
  const bool is_1 = version.major < 2;
  return fmt::format(fmt::runtime(fmt::format("{}{}{}", general, is_1 ? cri_1 : cri_2, runtime_handler)),
                     fmt::arg("version", is_1 ? 2 : 3), fmt::arg("root", places.root.native()),
                     fmt::arg("directory", places.directory.native()), fmt::arg("socket", places.socket.native()),
                     fmt::arg("pause", pause_image), fmt::arg("runc", places.runc.native()),
                     fmt::arg("plugin", is_1 ? "io.containerd.grpc.v1.cri" : "io.containerd.cri.v1.runtime"));
}

}  // namespace testbed
