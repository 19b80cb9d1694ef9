#pragma once
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "api.pb.h"
#include "testbed/calls.hpp"
#include "testbed/pod_cgroups.hpp"
#include "testbed/pod_spec.hpp"

namespace testbed {

/// One that no pod had before.
[[nodiscard]] std::string random_uid();

/// Runs pods on a node by blocking CRI calls, in the kubelet's stead. Each call fails with containerd's message.
class Cri {
 public:
  Cri(const std::filesystem::path& socket, const PodCgroups& node);

  /// Returns when all containers are started.
  [[nodiscard]] RunningPod run_pod(const PodSpec& spec);

  [[nodiscard]] bool is_running(const std::string& container) const;
  /// All of its containers run.
  [[nodiscard]] bool is_running(const RunningPod& pod) const;
  /// "namespace/name" of every pod whose sandbox is ready, sorted.
  [[nodiscard]] std::vector<std::string> ready_pods() const;
  /// Everything CRI says of a container and of a sandbox.
  [[nodiscard]] runtime::v1::ContainerStatus container_status(const std::string& container) const;
  [[nodiscard]] google::protobuf::RepeatedPtrField<runtime::v1::PodSandbox> sandboxes() const;
  [[nodiscard]] google::protobuf::RepeatedPtrField<runtime::v1::Container> containers() const;
  [[nodiscard]] google::protobuf::RepeatedPtrField<runtime::v1::Image> images() const;

  /// SIGTERM to each container in turn, SIGKILL after the grace period, then the sandbox. Until lists have it as
  /// stopped: containerd 2 answers before it has heard of the sandbox's end.
  void stop(const RunningPod& pod, std::chrono::seconds grace_period);
  /// Of a stopped pod or a running one, which is killed.
  void remove(const RunningPod& pod);

  /// For whatever else is asked of containerd.
  [[nodiscard]] const Calls& calls() const { return calls_; }

 private:
  std::string run_container(const PodSpec& pod, const ContainerSpec& container, const std::string& sandbox,
                            const runtime::v1::PodSandboxConfig& sandbox_config);

  const PodCgroups& node_;
  Calls calls_;
};

}  // namespace testbed
