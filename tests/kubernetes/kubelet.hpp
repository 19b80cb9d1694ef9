#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "control_plane.hpp"
#include "testbed/testbed.hpp"

namespace kubernetes {

/// A real kubelet for a testbed's node: it runs pods by the testbed's containerd, in cgroups below the node's, with its
/// root directory below the testbed's. Of this machine it changes nothing that outlives this object.
class Kubelet {
 public:
  struct Options {
    /// Its eviction fields and others of a KubeletConfiguration, YAML lines. Without any it evicts for memory at its
    /// default of 100Mi, and for disks never.
    std::string configuration = "evictionHard: {memory.available: 100Mi}\n";
  };

  /// Returns when the node is registered and the kubelet has told its state. The testbed's directory must be a shared
  /// mount, or containerd would not see the volumes that the kubelet mounts.
  Kubelet(testbed::Testbed& testbed, const ControlPlane& control_plane, const Options& options);
  Kubelet(const Kubelet&) = delete;
  Kubelet& operator=(const Kubelet&) = delete;
  /// Ends it. Its pods end with the testbed's containerd.
  ~Kubelet();

  void stop();
  /// With the same configuration and state; returns when it answers.
  void start();

  /// What --root-dir says, /var/lib/kubelet elsewhere.
  [[nodiscard]] std::filesystem::path root() const { return directory_ / "root"; }
  /// Files here are static pods.
  [[nodiscard]] std::filesystem::path manifests() const { return directory_ / "manifests"; }
  /// "https://127.0.0.1:1234", which serves /pods to whom RBAC allows nodes/proxy. The control plane's authority
  /// vouches for it.
  [[nodiscard]] std::string server() const;
  [[nodiscard]] std::filesystem::path log() const { return directory_ / "kubelet.log"; }
  /// Its whole KubeletConfiguration, the file that evictd would be given.
  [[nodiscard]] std::filesystem::path configuration() const { return directory_ / "config.yaml"; }

 private:
  void make_cgroups() const;
  void write_configuration(const std::string& fields) const;

  testbed::Testbed& testbed_;
  const ControlPlane& control_plane_;
  std::filesystem::path directory_;
  std::uint16_t port_;
  KeyPair serving_;
  std::filesystem::path kubeconfig_;
  std::optional<testbed::Process> process_;
};

}  // namespace kubernetes
