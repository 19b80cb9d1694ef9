#pragma once
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>

#include "cluster.hpp"
#include "testbed/agent.hpp"

namespace kubernetes {

/// A pod of class BestEffort that holds as much memory as it is told.
class Hog {
 public:
  /// Returns when it runs and holds a few MiB.
  Hog(Cluster& cluster, const std::string& name, const std::string& restart_policy = "Never");

  /// Bytes, from now on; it takes them within about a second a GiB.
  void hold(std::int64_t bytes) const;
  [[nodiscard]] const testbed::RunningPod& pod() const { return pod_; }

 private:
  std::filesystem::path directory_;
  testbed::RunningPod pod_;
};

/// Every version of a pod that the API server has shown since this object was made, by a watch.
class History {
 public:
  /// The pod must be there; returns when its present version has come.
  History(Cluster& cluster, const std::string& pod);

  using Condition = std::function<bool(const Answer& pod)>;
  [[nodiscard]] std::size_t count(const Condition& condition) const;

 private:
  testbed::Process watch_;
};

/// A kubeconfig with a token of the account that tools/deploy/kubernetes makes, which is made if need be.
std::filesystem::path evictd_kubeconfig(const Cluster& cluster);

/// Gives that account the right of variants/report-delete.yaml.
void allow_deletion(const Cluster& cluster);

/// What evictd beside the cluster's kubelet is started with: the fields of its KubeletConfiguration, and further
/// sections of its AgentConfiguration, both YAML lines.
testbed::Agent::Options agent_options(Cluster& cluster, const std::string& thresholds,
                                      const std::string& sections = "");

}  // namespace kubernetes
