#pragma once
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/pod.hpp"
#include "testbed/pod_cgroups.hpp"

struct sd_bus;

namespace node_suite {

/// The pods' cgroups as a kubelet with the systemd driver has them (pkg/kubelet/cm, cgroup_manager_linux.go): slices of
/// systemd's, "kubepods-burstable-pod<uid, with _ for ->.slice", and Guaranteed pods directly below kubepods.slice.
class Slices final : public testbed::PodCgroups {
 public:
  Slices();
  ~Slices();

  [[nodiscard]] std::string pod_cgroup(evictd::core::QosClass qos, std::string_view uid) const override;
  [[nodiscard]] std::vector<pid_t> processes(std::string_view slice) const override;
  [[nodiscard]] std::int64_t memory_capacity() const override;

  /// Has systemd make the slice, and those above it, as a kubelet does before it asks for the sandbox.
  void make(const std::string& slice) const;
  /// Has systemd remove it, as a kubelet does once the pod is gone.
  void remove(const std::string& slice) const;
  /// "/sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/…"
  [[nodiscard]] static std::filesystem::path directory(std::string_view slice);

 private:
  sd_bus* bus_ = nullptr;
};

}  // namespace node_suite
