#pragma once
#include "admission/node_snapshot.hpp"
#include "admission/pod_allocation.hpp"

namespace evictd::agent {

/// The node that pods are to run on. On the reactor.
class AdmittingNode {
 public:
  AdmittingNode() = default;
  AdmittingNode(const AdmittingNode&) = delete;
  AdmittingNode& operator=(const AdmittingNode&) = delete;
  virtual ~AdmittingNode() = default;

  /// As it is now, but for its allocations.
  [[nodiscard]] virtual admission::NodeSnapshot snapshot() const = 0;
  /// Saves what pods were given. Called whenever that has changed.
  virtual void save(const admission::Allocations& allocations) = 0;
};

}  // namespace evictd::agent
