#pragma once
#include <prometheus/metric_family.h>

#include <string_view>
#include <utility>
#include <vector>

namespace evictd::metrics {

/// Families put together at a scrape, for what is counted or measured elsewhere.
class Families {
 public:
  using Label = std::pair<std::string_view, std::string_view>;
  using Labels = std::vector<Label>;

  void gauge(std::string_view name, std::string_view help, double value, const Labels& labels = {});
  void counter(std::string_view name, std::string_view help, double value, const Labels& labels = {});
  /// Buckets as Prometheus has them: each counts all before it, the last has no bound.
  void histogram(std::string_view name, std::string_view help, prometheus::ClientMetric::Histogram value,
                 const Labels& labels);

  [[nodiscard]] std::vector<prometheus::MetricFamily> take() { return std::move(families_); }

 private:
  prometheus::ClientMetric& add(prometheus::MetricType type, std::string_view name, std::string_view help,
                                const Labels& labels);

  std::vector<prometheus::MetricFamily> families_;
};

}  // namespace evictd::metrics
