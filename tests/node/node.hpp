#pragma once
#include <evictd.pb.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/pod.hpp"
#include "slices.hpp"
#include "testbed/cri.hpp"
#include "testbed/event_stream.hpp"
#include "testbed/pod_spec.hpp"

namespace node_suite {

inline constexpr std::int64_t mebi = 1 << 20;

/// A pod that is not started yet; `load`: see testbed/load.cpp.
[[nodiscard]] testbed::PodSpec pod(std::string name, evictd::core::QosClass qos, std::vector<std::string> load);

/// The node that this program runs on: its containerd, and the evictd that systemd has started from its package. What a
/// test started, and the thresholds that it set, go with this object.
class Node {
 public:
  Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node();

  [[nodiscard]] testbed::Cri& cri() { return cri_; }
  /// With a slice of its own, as a kubelet starts it. Returns when evictd lists it.
  testbed::RunningPod run(testbed::PodSpec spec);
  /// It outlives this object: somebody else sees to it.
  void leave(const testbed::RunningPod& pod);

  /// In force when this returns: the eviction fields of a KubeletConfiguration, YAML.
  void set_thresholds(const std::string& yaml);
  /// What evictd has by its configuration file, from now on: it is restarted.
  void configure(const std::string& agent_yaml);
  /// The number that a signal has now, in its unit.
  [[nodiscard]] std::int64_t available(std::string_view signal) const;
  [[nodiscard]] evictd::v1::NodeStatus status() const;
  [[nodiscard]] evictd::v1::RankPodsResponse ranking() const;
  /// Of this evictd and, by its history, of those before it.
  [[nodiscard]] testbed::EventStream& events() { return *events_; }
  /// Connects to the evictd that has taken the place of the last one, and waits until it knows the runtime.
  void reconnect();

  /// What the node still has of a pod that is gone, a line each: processes, scopes, shims, mounts, directories of the
  /// runtime. A runtime that was slow to answer may be a moment behind: it is waited for.
  [[nodiscard]] static std::string left_of(const testbed::RunningPod& pod);

 private:
  Slices slices_;
  testbed::Cri cri_;
  std::vector<testbed::RunningPod> pods_;
  std::unique_ptr<testbed::EventStream> events_;
};

/// A property of a unit, as systemctl prints it: "active".
[[nodiscard]] std::string property(const std::string& name, const std::string& unit = "evictd.service");
/// The process of evictd's service.
[[nodiscard]] pid_t main_pid();
/// Waits until systemd has another process of the service, and that is ready.
void wait_for_successor(pid_t predecessor);
/// The journal's entries, by journalctl's own arguments.
[[nodiscard]] std::string journal(std::vector<std::string> arguments);

}  // namespace node_suite
