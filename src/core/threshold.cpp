#include "core/threshold.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <limits>
#include <utility>

#include "core/saturating.hpp"

namespace evictd::core {
namespace {

/// The shortest number of percent that is read as this very fraction, so that 60% prints as 60%: a hundred times the
/// float32 would be 60.000004.
std::string print_percentage(float fraction) {
  constexpr int most_decimals = 12;
  std::array<char, 64> buffer{};
  const auto percent = static_cast<double>(fraction) * 100;
  char* end = nullptr;
  for (int decimals = 0; decimals <= most_decimals; ++decimals) {
    end = std::to_chars(buffer.begin(), buffer.end(), percent, std::chars_format::fixed, decimals).ptr;
    float read = 0;
    std::from_chars(buffer.data(), end, read);
    if (read / 100 == fraction) break;
  }
  return std::string(buffer.data(), end) + "%";
}

}  // namespace

std::int64_t ThresholdValue::of(std::int64_t capacity) const {
  if (const auto* quantity = std::get_if<Quantity>(&value)) return quantity->value();
  constexpr double too_large = 0x1p63;  // the first number beyond int64
  const auto share = static_cast<double>(capacity) * static_cast<double>(std::get<Percentage>(value).fraction);
  return share < too_large ? static_cast<std::int64_t>(share) : std::numeric_limits<std::int64_t>::max();
}

std::string ThresholdValue::to_string() const {
  if (const auto* quantity = std::get_if<Quantity>(&value)) return quantity->to_string();
  return print_percentage(std::get<Percentage>(value).fraction);
}

std::string_view name(ThresholdSource source) {
  static constexpr std::array<std::string_view, 5> names{"default", "evictionHard", "evictionSoft",
                                                         "enforceNodeAllocatable", "derived"};
  return names[static_cast<std::size_t>(source)];
}

std::int64_t required(const Threshold& threshold, std::int64_t capacity, Enforce enforce) {
  const auto value = threshold.value.of(capacity);
  if (enforce == Enforce::value_only || !threshold.min_reclaim) return value;
  return saturating_add(value, threshold.min_reclaim->of(capacity));
}

bool is_met(const Threshold& threshold, const Observations& observations, Enforce enforce) {
  const auto& observation = observations[threshold.signal];
  return observation && required(threshold, observation->capacity, enforce) > observation->available;
}

std::vector<Threshold> met(std::span<const Threshold> thresholds, const Observations& observations, Enforce enforce) {
  std::vector<Threshold> result;
  std::ranges::copy_if(thresholds, std::back_inserter(result),
                       [&](const Threshold& threshold) { return is_met(threshold, observations, enforce); });
  return result;
}

void sort_by_precedence(std::vector<Threshold>& thresholds) {
  std::ranges::stable_sort(
      thresholds, {}, [](const Threshold& threshold) { return std::pair{threshold.signal, !threshold.is_hard()}; });
}

std::string to_string(const Threshold& threshold) {
  auto text = std::string(name(threshold.signal)) + "<" + threshold.value.to_string();
  if (!threshold.is_hard()) text += " for " + to_string(threshold.grace);
  return text;
}

}  // namespace evictd::core
