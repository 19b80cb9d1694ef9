#pragma once
#include <prometheus/collectable.h>
#include <vector>

#include "metrics/exposition.hpp"

namespace evictd::metrics {

/// How the node and the agent stand, as families. Amounts of signals are in families of their own for each unit:
/// bytes, inodes and process ids cannot be added up.
class NodeFamilies final : public prometheus::Collectable {
 public:
  /// The snapshot must outlive this.
  explicit NodeFamilies(const Snapshot& snapshot) : snapshot_{snapshot} {}

  [[nodiscard]] std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const Snapshot& snapshot_;
};

}  // namespace evictd::metrics
