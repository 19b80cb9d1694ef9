#pragma once
#include <cstddef>
#include <string>

#include "admission/pod_allocation.hpp"
#include "agent/admitting_node.hpp"
#include "core/error.hpp"
#include "core/pod.hpp"

namespace evictd::agent {

/// Bytes of what device plugins say of all containers (admission::size_of): far more than any node's plugins do. All of
/// it is written whenever a pod comes or goes, and copied by the reactor for a decision; a file of any size would not
/// be read again (node::largest_allocation_file).
inline constexpr std::size_t most_edits = std::size_t{4} << 20;

/// What pods have for themselves, saved whenever it changes. On the reactor.
class KeptAllocations {
 public:
  /// The node must outlive this. `kept`: what pods were given before a restart.
  KeptAllocations(AdmittingNode& node, admission::Allocations kept);

  [[nodiscard]] const admission::Allocations& all() const { return all_; }
  /// What the pod has; empty: nothing.
  [[nodiscard]] admission::PodAllocation of(const std::string& uid) const;

  /// The pod has this from now on, in place of what it had; empty: nothing.
  void give(const std::string& uid, const admission::PodAllocation& allocation);
  /// Keeps what plugins said of what the pod has. An error: the pod has gone meanwhile, or it would be more than
  /// `most_edits`.
  [[nodiscard]] Result<void> keep_edits(const std::string& uid, const admission::PodAllocation& allocation);
  /// Whoever is neither of these pods nor of those that are coming has nothing any more. What was given to a pod by its
  /// name alone is its uid's from now on.
  void pods_changed(const core::PodList& pods, const core::PodList& coming);

 private:
  AdmittingNode& node_;
  admission::Allocations all_;
};

}  // namespace evictd::agent
