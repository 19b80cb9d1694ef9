#pragma once
#include <filesystem>
#include <string>

#include "cluster.hpp"

namespace kubernetes {

/// Makes the image by tools/deploy/image from the programs of this build, and gives it to the testbed's containerd.
/// Returns its name.
std::string import_image(testbed::Testbed& testbed);

/// evictd as tools/deploy/kubernetes has it, run by the cluster's kubelet from the image. The files are taken as they
/// are, but for what differs between a node and a testbed: the namespace is the cluster's own, the host's paths are the
/// testbed's, capabilities that this machine itself lacks are left out, and the parts of a cluster that are not there
/// (who makes a DaemonSet's pods, gives them a token, and leads to the API server) are done in their stead.
class Deployment {
 public:
  struct Options {
    std::string eviction_hard;     ///< instead of the deployed thresholds, YAML flow: "{memory.available: 200Mi}"
    std::string agent_settings{};  ///< further sections of the AgentConfiguration, YAML lines
  };

  /// Returns when the pod is ready, by its probe.
  Deployment(Cluster& cluster, const Options& options);

  [[nodiscard]] const std::string& pod() const { return pod_; }
  /// Where evictctl on the host finds the agent.
  [[nodiscard]] std::string address() const { return "unix://" + (directory_ / "evictd.sock").native(); }
  /// What evictd said.
  [[nodiscard]] std::string log() const;

 private:
  void create_objects(const Options& options) const;
  void create_pod() const;

  Cluster& cluster_;
  std::filesystem::path directory_;  // the host's /run/evictd
  std::string pod_;
};

}  // namespace kubernetes
