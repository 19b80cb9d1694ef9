#include "core/threshold_change.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <utility>

#include "core/signal.hpp"

namespace evictd::core {
namespace {

/// A signal's hard or its soft threshold. Those that follow from others are not listed.
using Slot = std::pair<Signal, bool>;  // and whether it was given as a soft one, maybe with no grace period at all
using Slots = std::map<Slot, Threshold>;

bool is_soft(const Threshold& threshold) {
  return threshold.source == ThresholdSource::EvictionSoft || !threshold.is_hard();
}

Slots by_slot(std::span<const Threshold> thresholds) {
  Slots slots;
  for (const auto& threshold : thresholds)
    if (threshold.is_configured()) slots.insert_or_assign({threshold.signal, is_soft(threshold)}, threshold);
  return slots;
}

std::string words_or_none(const Slots& slots, const Slot& slot) {
  const auto found = slots.find(slot);
  return found == slots.end() ? "none" : in_words(found->second);
}

bool meets_hard(std::span<const Threshold> thresholds, Signal signal, const Observations& observations) {
  return std::ranges::any_of(thresholds, [&](const Threshold& threshold) {
    return threshold.signal == signal && threshold.is_hard() && is_met(threshold, observations, Enforce::value_only);
  });
}

/// In the unit that the signal is configured in.
std::string amount(Signal signal, std::int64_t value) {
  if (is_counted(signal)) return Quantity::count(value).to_string();
  constexpr std::int64_t mib = 1 << 20;
  const bool large = value >= 10 * mib;  // what is below a MiB is of no interest then
  return Quantity::bytes(large ? value / mib * mib : value).to_string();
}

}  // namespace

std::string in_words(const Threshold& threshold) {
  auto text = threshold.value.to_string();
  if (!threshold.is_hard()) text += " for " + to_string(threshold.grace);
  if (threshold.min_reclaim) text += ", at least " + threshold.min_reclaim->to_string() + " reclaimed";
  return text;
}

std::vector<std::string> differences(std::span<const Threshold> before, std::span<const Threshold> after) {
  const auto old_slots = by_slot(before);
  const auto new_slots = by_slot(after);
  auto all = old_slots;
  all.insert(new_slots.begin(), new_slots.end());
  std::vector<std::string> lines;
  for (const auto& [slot, ignored] : all) {
    const auto old_words = words_or_none(old_slots, slot);
    const auto new_words = words_or_none(new_slots, slot);
    if (old_words == new_words) continue;
    lines.push_back(std::string(name(slot.first)) + (slot.second ? " (soft)" : "") + ": " + old_words + " -> " +
                    new_words);
  }
  return lines;
}

std::vector<std::string> evict_at_once(std::span<const Threshold> before, std::span<const Threshold> after,
                                       const Observations& observations) {
  std::vector<std::string> lines;
  for (const auto& threshold : after) {
    const auto signal = threshold.signal;
    if (!threshold.is_hard() || !is_met(threshold, observations, Enforce::value_only)) continue;
    if (meets_hard(before, signal, observations)) continue;
    lines.push_back(to_string(threshold) + ": " + amount(signal, observations[signal]->available) + " available");
  }
  return lines;
}

std::string revision(std::span<const Threshold> thresholds) {
  std::vector<std::string> lines;
  for (const auto& threshold : thresholds)
    lines.push_back(std::string(name(threshold.signal)) + (threshold.is_hard() ? "=" : "~") + in_words(threshold));
  std::ranges::sort(lines);
  // FNV-1a: a fingerprint that is the same in every build, and no protection against anybody.
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const auto& line : lines)
    for (const char c : line + '\n') hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  std::string digits;
  for (int shift = 60; shift >= 0; shift -= 4) digits += "0123456789abcdef"[(hash >> shift) & 0xf];
  return digits;
}

}  // namespace evictd::core
