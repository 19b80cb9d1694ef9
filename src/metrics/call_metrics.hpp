#pragma once
#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <map>
#include <string_view>
#include <utility>

#include "core/duration.hpp"

namespace evictd::metrics {

/// The calls to the container runtime: how many by method and code, how long by method.
class CallMetrics {
 public:
  explicit CallMetrics(prometheus::Registry& registry);

  /// As Exposition::count.
  void count(std::string_view method, std::string_view code, core::Duration time);

 private:
  prometheus::Family<prometheus::Counter>& calls_;
  prometheus::Family<prometheus::Histogram>& durations_;
  // The names are of the program's own text, and stay.
  std::map<std::pair<std::string_view, std::string_view>, prometheus::Counter*> call_;
  std::map<std::string_view, prometheus::Histogram*> duration_;
};

}  // namespace evictd::metrics
