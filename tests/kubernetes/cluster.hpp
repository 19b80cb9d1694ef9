#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control_plane.hpp"
#include "kubelet.hpp"
#include "testbed/testbed.hpp"

namespace kubernetes {

/// A pod of one container, on the host's network as there is no CNI, bound to the node.
struct Pod {
  std::string name;
  std::vector<std::string> args{"pause"};  ///< of `load`
  std::string priority_class{};            ///< "system-node-critical"
  std::string resources{};  ///< of the container, YAML flow: "requests: {memory: 64Mi}"; empty: BestEffort
  std::string volumes{};    ///< YAML flow, elements of `volumes`: "{name: data, emptyDir: {}}"
  std::string mounts{};     ///< likewise of the container's `volumeMounts`
  std::string restart_policy = "Never";
  std::map<std::string, std::string> labels{};
};

/// A node in a cluster: a testbed, an API server and a kubelet. Pods are made through the API server, in a namespace
/// that is this cluster's own.
class Cluster {
 public:
  struct Options {
    testbed::Testbed::Options testbed{};
    Kubelet::Options kubelet{};
  };

  Cluster() : Cluster(Options{}) {}
  explicit Cluster(const Options& options);
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;
  /// Also removes the pods' logs, whose place a kubelet has no option for.
  ~Cluster();

  [[nodiscard]] testbed::Testbed& testbed() { return testbed_; }
  [[nodiscard]] ControlPlane& control_plane() { return control_plane_; }
  [[nodiscard]] const ControlPlane& control_plane() const { return control_plane_; }
  [[nodiscard]] Kubelet& kubelet() { return *kubelet_; }
  [[nodiscard]] const ApiClient& admin() const { return control_plane_.admin(); }

  [[nodiscard]] const std::string& name_space() const { return name_space_; }
  /// "/api/v1/namespaces/NAMESPACE/pods/NAME", and of all pods without a name.
  [[nodiscard]] std::string pod_path(const std::string& name = "") const;

  /// Gives the pod to the API server.
  void create(const Pod& pod) const;
  /// And waits until its container runs; gives back what the testbed knows a running pod by.
  [[nodiscard]] testbed::RunningPod run(const Pod& pod);
  /// The pod's object as it is now.
  [[nodiscard]] Answer pod(const std::string& name) const;
  [[nodiscard]] std::string phase(const std::string& name) const { return pod(name).at("/status/phase"); }
  /// At once, without a grace period.
  void remove_pod(const std::string& name) const;
  /// The objects of kind Event that concern this object, newest last.
  [[nodiscard]] Answer events_of(const std::string& kind, const std::string& name) const;

 private:
  testbed::Testbed testbed_;
  ControlPlane control_plane_;
  std::string name_space_;
  std::optional<Kubelet> kubelet_;
};

/// Removes the logs of pods of a namespace that a test had for itself, from where every kubelet keeps them.
void remove_pod_logs(const std::string& name_space);
/// The same for namespaces of tests that were killed.
void remove_left_pod_logs();

}  // namespace kubernetes
