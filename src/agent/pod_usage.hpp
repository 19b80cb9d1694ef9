#pragma once
#include <boost/asio/awaitable.hpp>
#include <optional>
#include <span>
#include <vector>

#include "core/action.hpp"
#include "core/standing.hpp"
#include "core/usage.hpp"
#include "cri/client.hpp"
#include "node/pod_cgroups.hpp"
#include "node/pod_disk.hpp"
#include "pods/cri_pods.hpp"
#include "pods/layer_usage.hpp"

namespace evictd::agent {

using PodUsages = std::vector<std::optional<core::PodUsage>>;

/// What pods use, as the passes ask for it: one entry for each pod of the list.
///
/// Memory and processes are read from the cgroups at once. A pod whose cgroup has gone uses nothing; only one that
/// exists and cannot be read has no stats. Disk usage takes the runtime and walks through directories: it is measured
/// in the background, and what is known of it can be had at once.
class PodUsageReader {
 public:
  PodUsageReader(node::PodCgroups& cgroups, node::PodDisk& disk, cri::Client& runtime, const pods::CriPods& pods)
      : cgroups_{cgroups}, disk_{disk}, runtime_{runtime}, pods_{pods} {}

  /// Working sets as far as they decide who goes (core/deciding_usage.hpp), bounds for the rest. `standings`: one for
  /// each pod.
  [[nodiscard]] PodUsages memory(const core::PodList& pods, std::span<const core::Standing> standings);
  [[nodiscard]] PodUsages processes(const core::PodList& pods);
  /// As measured last. A pod that never was has no stats.
  [[nodiscard]] PodUsages known_disk(const core::PodList& pods) const;
  /// Measures anew. Takes as long as the directories are large, without blocking the reactor.
  [[nodiscard]] boost::asio::awaitable<void> measure_disk(core::PodListPtr pods);

  /// With the working sets of the pod's containers, for the message that names the greedy ones.
  [[nodiscard]] core::PodUsage with_containers(const core::Pod& pod, core::PodUsage usage) const;

 private:
  [[nodiscard]] std::optional<core::PodUsage> known_disk(const core::Pod& pod) const;

  node::PodCgroups& cgroups_;
  node::PodDisk& disk_;
  cri::Client& runtime_;
  const pods::CriPods& pods_;
  pods::LayerUsage layers_;
};

}  // namespace evictd::agent
