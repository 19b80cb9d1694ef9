#include "core/threshold.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace evictd::core {

std::int64_t ThresholdValue::of(std::int64_t capacity) const {
  if (const auto* quantity = std::get_if<Quantity>(&value)) return quantity->value();
  return static_cast<std::int64_t>(static_cast<double>(capacity) *
                                   static_cast<double>(std::get<Percentage>(value).fraction));
}

std::string ThresholdValue::to_string() const {
  if (const auto* quantity = std::get_if<Quantity>(&value)) return quantity->to_string();
  // The shortest text that gives the same float32, so that 10% prints as 10%.
  std::array<char, 32> buffer{};
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), std::get<Percentage>(value).fraction * 100).ptr;
  return std::string(buffer.data(), end) + "%";
}

std::string_view name(ThresholdSource source) {
  static constexpr std::array<std::string_view, 5> names{"default", "evictionHard", "evictionSoft",
                                                         "enforceNodeAllocatable", "derived"};
  return names[static_cast<std::size_t>(source)];
}

bool is_met(const Threshold& threshold, const Observations& observations, Enforce enforce) {
  const auto& observation = observations[threshold.signal];
  if (!observation) return false;
  auto wanted = threshold.value.of(observation->capacity);
  if (enforce == Enforce::min_reclaim && threshold.min_reclaim)
    wanted += threshold.min_reclaim->of(observation->capacity);
  return wanted > observation->available;
}

std::vector<Threshold> met(std::span<const Threshold> thresholds, const Observations& observations, Enforce enforce) {
  std::vector<Threshold> result;
  std::ranges::copy_if(thresholds, std::back_inserter(result),
                       [&](const Threshold& threshold) { return is_met(threshold, observations, enforce); });
  return result;
}

void sort_by_precedence(std::vector<Threshold>& thresholds) {
  std::ranges::stable_sort(thresholds, {}, [](const Threshold& threshold) {
    return std::pair{threshold.signal, !threshold.is_hard()};
  });
}

std::string to_string(const Threshold& threshold) {
  auto text = std::string(name(threshold.signal)) + "<" + threshold.value.to_string();
  if (!threshold.is_hard()) text += " for " + to_string(threshold.grace);
  return text;
}

}  // namespace evictd::core
