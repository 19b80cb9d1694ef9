#pragma once
#include <prometheus/counter.h>
#include <prometheus/registry.h>

#include <cstddef>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace evictd::metrics {

/// A label's value as a scraper takes it: text that is not printable ASCII, or is endless, would cost the whole scrape.
[[nodiscard]] std::string label_value(std::string_view text);

/// Counters told apart by labels, some of whose values come from others: the name of a resource that a pod asks for,
/// the name of a call. However many there are, a family stays small: what comes after the first `most` sets of values
/// is counted as "other".
class LabelledCounters {
 public:
  static constexpr std::size_t most = 64;

  LabelledCounters(prometheus::Registry& registry, const std::string& name, const std::string& help,
                   std::vector<std::string> labels);

  /// One value for each label, in their order. An amount of 0 makes the counter be there: what was absent before its
  /// first increment does not increase, as Prometheus sees it.
  void count(std::initializer_list<std::string_view> values, double amount = 1);

 private:
  prometheus::Family<prometheus::Counter>& family_;
  std::vector<std::string> labels_;
  std::map<std::vector<std::string>, prometheus::Counter*> counters_;
};

/// The same without labels.
[[nodiscard]] prometheus::Counter& add_counter(prometheus::Registry& registry, const std::string& name,
                                               const std::string& help);

}  // namespace evictd::metrics
