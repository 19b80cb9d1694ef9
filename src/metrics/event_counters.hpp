#pragma once
#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <map>
#include <string>

#include "metrics/labels.hpp"

namespace evictd::v1 {
class Event;
}

namespace evictd::metrics {

/// What happened, counted from the events that tell of it: so the numbers and the events agree.
class EventCounters {
 public:
  explicit EventCounters(prometheus::Registry& registry);

  void count(const v1::Event& event);

 private:
  void count_intent(const v1::Event& event);
  void count_reclaim(const v1::Event& event);
  void observe_age(const v1::Event& event);

  LabelledCounters events_;
  LabelledCounters evictions_;
  LabelledCounters dry_run_evictions_;
  LabelledCounters failures_;
  LabelledCounters crossings_;
  LabelledCounters recoveries_;
  LabelledCounters cleanups_;
  LabelledCounters reclaims_;
  LabelledCounters rejections_;
  LabelledCounters audited_calls_;
  LabelledCounters source_failures_;
  LabelledCounters shutdowns_;
  LabelledCounters kernel_kills_;
  prometheus::Counter& released_bytes_;
  prometheus::Counter& images_removed_;
  prometheus::Counter& containers_removed_;
  prometheus::Counter& config_changes_;
  prometheus::Counter& trimmed_bytes_;
  prometheus::Family<prometheus::Histogram>& stats_ages_;
  std::map<std::string, prometheus::Histogram*> stats_age_;  // by signal
};

}  // namespace evictd::metrics
