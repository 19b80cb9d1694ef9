#include "core/eviction_settings.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/printable.hpp"
#include "core/quantity.hpp"
#include "core/signal.hpp"

namespace evictd::core {
namespace {

using BySignal = EvictionSettings::BySignal;

std::string quote(std::string_view text) { return '"' + printable(text) + '"'; }

/// "evictionHard: memory.available", where an error belongs.
std::string path(std::string_view field, std::string_view signal) {
  return std::string(field) + ": " + printable(signal);
}

Result<Signal> known_signal(std::string_view field, std::string_view text) {
  if (const auto signal = parse_signal(text)) return *signal;
  return fail(path(field, text) + ": unsupported eviction signal " + printable(text));
}

/// "12.5%" as a fraction in float32, the way the kubelet divides: float32(12.5) / 100.
Result<float> parse_percentage(std::string_view text) {
  auto number = text;
  while (number.ends_with('%')) number.remove_suffix(1);
  if (number.starts_with('+')) number.remove_prefix(1);
  float percent = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), percent);
  if (number.empty() || error != std::errc{} || end != number.data() + number.size() || !std::isfinite(percent))
    return fail(quote(text) + " is not a percentage such as 10%");
  return percent / 100;
}

/// Absent where the entry says "ignore me" (0% and 100%, to the letter).
Result<std::optional<ThresholdValue>> parse_value(std::string_view text) {
  if (text == "0%" || text == "100%") return std::nullopt;
  if (text.ends_with('%')) {
    const auto fraction = parse_percentage(text);
    if (!fraction) return std::unexpected(fraction.error());
    if (*fraction < 0) return fail(quote(text) + " is negative: a threshold lies between 0% and 100%");
    if (*fraction > 1) return fail(quote(text) + " is more than 100%");
    return ThresholdValue{Percentage{*fraction}};
  }
  auto quantity = Quantity::parse(text);
  if (!quantity) return std::unexpected(quantity.error());
  if (quantity->is_negative() || quantity->is_zero()) return fail(quote(text) + " must be more than zero");
  return ThresholdValue{*std::move(quantity)};
}

Result<ThresholdValue> parse_min_reclaim(std::string_view text) {
  if (text.ends_with('%')) {
    const auto fraction = parse_percentage(text);
    if (!fraction) return std::unexpected(fraction.error());
    if (*fraction <= 0) return fail(quote(text) + " must be more than 0%");
    return ThresholdValue{Percentage{*fraction}};
  }
  auto quantity = Quantity::parse(text);
  if (!quantity) return std::unexpected(quantity.error());
  if (quantity->is_negative()) return fail(quote(text) + " must not be negative");
  return ThresholdValue{*std::move(quantity)};
}

Result<std::vector<Threshold>> parse_thresholds(std::string_view field, const BySignal& entries,
                                                ThresholdSource source) {
  std::vector<Threshold> thresholds;
  for (const auto& [signal_name, text] : entries) {
    const auto signal = known_signal(field, signal_name);
    if (!signal) return std::unexpected(signal.error());
    auto value = parse_value(text);
    if (!value) return fail(value.error(), path(field, signal_name));
    if (*value) thresholds.push_back({.signal = *signal, .value = **std::move(value), .source = source});
  }
  return thresholds;
}

Result<std::map<Signal, Duration>> parse_grace_periods(const BySignal& entries) {
  constexpr std::string_view field = "evictionSoftGracePeriod";
  std::map<Signal, Duration> periods;
  for (const auto& [signal_name, text] : entries) {
    const auto signal = known_signal(field, signal_name);
    if (!signal) return std::unexpected(signal.error());
    const auto period = parse_duration(text);
    if (!period) return fail(period.error(), path(field, signal_name));
    if (*period < Duration::zero())
      return fail(path(field, signal_name) + ": " + quote(text) + " must not be negative");
    periods[*signal] = *period;
  }
  return periods;
}

Result<std::map<Signal, ThresholdValue>> parse_min_reclaims(const BySignal& entries) {
  constexpr std::string_view field = "evictionMinimumReclaim";
  std::map<Signal, ThresholdValue> reclaims;
  for (const auto& [signal_name, text] : entries) {
    const auto signal = known_signal(field, signal_name);
    if (!signal) return std::unexpected(signal.error());
    auto value = parse_min_reclaim(text);
    if (!value) return fail(value.error(), path(field, signal_name));
    reclaims.emplace(*signal, *std::move(value));
  }
  return reclaims;
}

Result<std::vector<Threshold>> parse_hard(const EvictionSettings& settings) {
  if (settings.hard && !settings.merge_defaults)
    return parse_thresholds("evictionHard", *settings.hard, ThresholdSource::EvictionHard);
  auto defaults = default_hard_thresholds();
  for (const auto& [signal_name, text] : settings.hard.value_or(BySignal{})) defaults.erase(signal_name);
  auto given = parse_thresholds("evictionHard", settings.hard.value_or(BySignal{}), ThresholdSource::EvictionHard);
  const auto added = parse_thresholds("evictionHard", defaults, ThresholdSource::Default);
  if (given && added) given->insert(given->end(), added->begin(), added->end());
  return given;
}

/// The pods' cgroup guards itself by the same hard memory thresholds. (kubelet: addAllocatableThresholds)
void add_allocatable_copies(std::vector<Threshold>& thresholds) {
  const auto configured = thresholds.size();
  for (std::size_t i = 0; i < configured; ++i) {
    if (thresholds[i].signal != Signal::MemoryAvailable || !thresholds[i].is_hard()) continue;
    auto copy = thresholds[i];
    copy.signal = Signal::AllocatableMemoryAvailable;
    copy.source = ThresholdSource::EnforceNodeAllocatable;
    thresholds.push_back(std::move(copy));
  }
}

Result<std::vector<Threshold>> all_thresholds(const EvictionSettings& settings) {
  auto thresholds = parse_hard(settings);
  if (!thresholds) return thresholds;
  auto soft = parse_thresholds("evictionSoft", settings.soft, ThresholdSource::EvictionSoft);
  if (!soft) return soft;
  const auto grace = parse_grace_periods(settings.soft_grace_period);
  if (!grace) return std::unexpected(grace.error());
  const auto reclaims = parse_min_reclaims(settings.minimum_reclaim);
  if (!reclaims) return std::unexpected(reclaims.error());

  for (auto& threshold : *soft) {
    const auto period = grace->find(threshold.signal);
    if (period == grace->end())
      return fail(path("evictionSoft", name(threshold.signal)) +
                  ": a soft threshold needs a grace period: add it to evictionSoftGracePeriod");
    threshold.grace = period->second;
    thresholds->push_back(std::move(threshold));
  }
  for (auto& threshold : *thresholds)
    if (const auto reclaim = reclaims->find(threshold.signal); reclaim != reclaims->end())
      threshold.min_reclaim = reclaim->second;
  if (std::ranges::find(settings.enforce_node_allocatable, "pods") != settings.enforce_node_allocatable.end())
    add_allocatable_copies(*thresholds);
  sort_by_precedence(*thresholds);
  return thresholds;
}

bool is_containerfs(const Threshold& threshold) {
  return threshold.signal == Signal::ContainerfsAvailable || threshold.signal == Signal::ContainerfsInodesFree;
}

}  // namespace

const BySignal& default_hard_thresholds() {
  static const BySignal defaults{{"memory.available", "100Mi"},
                                 {"nodefs.available", "10%"},
                                 {"nodefs.inodesFree", "5%"},
                                 {"imagefs.available", "15%"},
                                 {"imagefs.inodesFree", "5%"}};
  return defaults;
}

Result<EvictionPolicy> make_policy(const EvictionSettings& settings) {
  auto thresholds = all_thresholds(settings);
  if (!thresholds) return std::unexpected(thresholds.error());
  if (settings.pressure_transition_period < Duration::zero())
    return fail("evictionPressureTransitionPeriod: " + quote(to_string(settings.pressure_transition_period)) +
                " must not be negative");
  EvictionPolicy policy;
  policy.thresholds = *std::move(thresholds);
  policy.max_pod_grace_period = std::chrono::seconds(settings.max_pod_grace_period_seconds);
  if (settings.pressure_transition_period > Duration::zero())
    policy.pressure_transition_period = settings.pressure_transition_period;
  policy.local_storage_isolation = settings.local_storage_capacity_isolation;
  return policy;
}

std::vector<Threshold> with_derived_containerfs(std::vector<Threshold> thresholds, FilesystemLayout layout) {
  std::erase_if(thresholds, is_containerfs);

  const bool from_imagefs = layout.dedicated_imagefs && !layout.split;
  const std::pair<Signal, Signal> sources[]{
      {from_imagefs ? Signal::ImagefsAvailable : Signal::NodefsAvailable, Signal::ContainerfsAvailable},
      {from_imagefs ? Signal::ImagefsInodesFree : Signal::NodefsInodesFree, Signal::ContainerfsInodesFree}};
  std::vector<Threshold> derived;
  for (const auto& [source, target] : sources) {
    for (const bool hard : {true, false}) {
      const auto last = std::find_if(thresholds.rbegin(), thresholds.rend(), [&](const Threshold& threshold) {
        return threshold.signal == source && threshold.is_hard() == hard;
      });
      if (last == thresholds.rend()) continue;
      derived.push_back(*last);
      derived.back().signal = target;
      derived.back().source = ThresholdSource::Derived;
    }
  }
  thresholds.insert(thresholds.end(), derived.begin(), derived.end());
  sort_by_precedence(thresholds);
  return thresholds;
}

std::vector<Threshold> with_given_containerfs_replaced(const std::vector<Threshold>& given, FilesystemLayout layout) {
  const auto was_given = [&](const Threshold& derived) {
    return std::ranges::any_of(given, [&](const Threshold& threshold) {
      return threshold.signal == derived.signal && threshold.is_hard() == derived.is_hard();
    });
  };
  auto thresholds = with_derived_containerfs(given, layout);
  std::erase_if(thresholds, [&](const Threshold& t) { return is_containerfs(t) && !was_given(t); });
  return thresholds;
}

}  // namespace evictd::core
