#include "metrics/families.hpp"

#include <algorithm>
#include <iterator>
#include <string>

#include "metrics/labels.hpp"

namespace evictd::metrics {

void Families::gauge(std::string_view name, std::string_view help, double value, const Labels& labels) {
  add(prometheus::MetricType::Gauge, name, help, labels).gauge.value = value;
}

void Families::counter(std::string_view name, std::string_view help, double value, const Labels& labels) {
  add(prometheus::MetricType::Counter, name, help, labels).counter.value = value;
}

void Families::histogram(std::string_view name, std::string_view help, prometheus::ClientMetric::Histogram value,
                         const Labels& labels) {
  add(prometheus::MetricType::Histogram, name, help, labels).histogram = std::move(value);
}

prometheus::ClientMetric& Families::add(prometheus::MetricType type, std::string_view name, std::string_view help,
                                        const Labels& labels) {
  auto family = std::ranges::find(families_, name, &prometheus::MetricFamily::name);
  if (family == families_.end()) {
    families_.push_back({.name = std::string(name), .help = std::string(help), .type = type, .metric = {}});
    family = std::prev(families_.end());
  }
  auto& metric = family->metric.emplace_back();
  for (const auto& [label, value] : labels) metric.label.push_back({std::string(label), label_value(value)});
  return metric;
}

}  // namespace evictd::metrics
