#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "kubelet/process.hpp"

namespace evictd::kubelet {

/// k3s runs its kubelet within itself and overwrites its own command line, which may hold secrets. What it hands to the
/// kubelet stands in its configuration and in the service that starts it.
struct K3s {
  std::filesystem::path drop_ins;      ///< kubelet.conf.d, which k3s fills
  std::vector<std::string> arguments;  ///< of the kubelet: --kubelet-arg, "kubelet-arg" of the configuration first
  std::vector<std::filesystem::path> files;  ///< in which that stands
  bool is_whole = false;                     ///< false: what k3s was started with is not known
};

/// As k3s 1.32 and later have it (k3s: pkg/configfilearg, pkg/daemons/agent). The error is that of its configuration.
/// Waits for the disk.
[[nodiscard]] Result<K3s> find_k3s(const Process& process, const std::filesystem::path& root);

}  // namespace evictd::kubelet
