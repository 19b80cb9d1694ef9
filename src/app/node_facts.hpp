#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>

#include "admission/node_snapshot.hpp"
#include "app/configuration.hpp"
#include "core/node.hpp"
#include "core/pod.hpp"

namespace evictd::kube {
class NodeMirror;
}

namespace evictd::app {

/// What admission knows of this node.
class NodeFacts {
 public:
  /// `memory_capacity`: of the cgroup that stands for the node, bytes. `cluster` may be null; it outlives this. `sys`:
  /// where the kernel tells of huge pages.
  NodeFacts(const Configuration& configuration, std::int64_t memory_capacity, const kube::NodeMirror* cluster,
            const std::filesystem::path& sys = "/sys");

  /// The node as the API server has it, or as evictd describes it without an API server; without its conditions and
  /// what its pods were given. `disk_capacity`: of the node's file system, bytes; absent: not measured yet, and nobody
  /// is refused for it.
  [[nodiscard]] admission::NodeSnapshot snapshot(std::optional<std::int64_t> disk_capacity) const;

 private:
  [[nodiscard]] core::Node described_by_itself(std::optional<std::int64_t> disk_capacity) const;

  const Configuration& configuration_;
  std::int64_t memory_capacity_;
  const kube::NodeMirror* cluster_;
  admission::NodeSnapshot host_;   // what does not change while evictd runs
  core::ResourceList huge_pages_;  // as they were at the start; a kubelet, too, looks once
};

}  // namespace evictd::app
