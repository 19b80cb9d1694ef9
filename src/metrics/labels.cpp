#include "metrics/labels.hpp"

#include <algorithm>
#include <iterator>

#include <iterator>
#include <utility>
#include "core/printable.hpp"

namespace evictd::metrics {
namespace {

constexpr std::size_t longest_value = 128;

}  // namespace

std::string label_value(std::string_view text) { return core::printable_ascii(text, longest_value); }

LabelledCounters::LabelledCounters(prometheus::Registry& registry, const std::string& name, const std::string& help,
                                   std::vector<std::string> labels)
    : family_{prometheus::BuildCounter().Name(name).Help(help).Register(registry)}, labels_{std::move(labels)} {}

void LabelledCounters::count(std::initializer_list<std::string_view> values, double amount) {
  std::vector<std::string> key;
  std::ranges::transform(values, std::back_inserter(key), label_value);
  auto found = counters_.find(key);
  if (found == counters_.end()) {
    if (counters_.size() >= most) key.assign(labels_.size(), "other");
    prometheus::Labels labels;
    for (std::size_t i = 0; i < labels_.size(); ++i) labels.emplace(labels_[i], key[i]);
    found = counters_.emplace(std::move(key), &family_.Add(labels)).first;
  }
  found->second->Increment(amount);
}

prometheus::Counter& add_counter(prometheus::Registry& registry, const std::string& name, const std::string& help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add({});
}

}  // namespace evictd::metrics
