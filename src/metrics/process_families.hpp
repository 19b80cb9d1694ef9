#pragma once
#include <prometheus/collectable.h>
#include <vector>

namespace evictd::metrics {

/// What this process takes of the machine, read when collected (0.1 ms, of which most is counting descriptors).
class ProcessFamilies final : public prometheus::Collectable {
 public:
  [[nodiscard]] std::vector<prometheus::MetricFamily> Collect() const override;
};

}  // namespace evictd::metrics
