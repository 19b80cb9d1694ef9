#pragma once
#include <functional>

#include "admission/node_snapshot.hpp"
#include "admission/pod_allocation.hpp"
#include "core/error.hpp"

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

  using Written = std::function<void(const Result<void>&)>;
  /// Has what pods were given written, and which of them are still coming, by another thread. Called whenever what they
  /// were given has changed. `written` is called on the reactor with what came of it, perhaps more than once, perhaps
  /// before this returns. It is not called where a later save came before these could be written: only that is written
  /// then, and told.
  virtual void save(const admission::Allocations& allocations, const admission::Coming& coming, Written written) = 0;
};

}  // namespace evictd::agent
