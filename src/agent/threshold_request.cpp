#include "agent/threshold_request.hpp"

#include <evictd.pb.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <ranges>
#include <string_view>
#include <utility>

#include "agent/threshold_control.hpp"
#include "config/nearest.hpp"
#include "core/duration.hpp"
#include "core/eviction_settings.hpp"
#include "core/signal.hpp"

namespace evictd::agent {
namespace {

using core::EvictionSettings;
using core::ThresholdOverlay;

template <class Entries>
void remove_all(ThresholdOverlay::BySignal& overlay, const Entries& entries) {
  for (const auto& [signal, value] : entries) overlay.insert_or_assign(signal, std::nullopt);
}

ThresholdOverlay nothing_of(const EvictionSettings& settings) {
  ThresholdOverlay overlay;
  remove_all(overlay.hard, core::hard_in_force(settings));
  remove_all(overlay.soft, settings.soft);
  remove_all(overlay.soft_grace_period, settings.soft_grace_period);
  remove_all(overlay.minimum_reclaim, settings.minimum_reclaim);
  return overlay;
}

Result<void> check_signal(std::string_view signal) {
  if (core::parse_signal(signal)) return {};
  const auto names = core::signal_names();
  auto hint = config::did_you_mean(signal, names);
  if (hint.empty()) hint = fmt::format(": there are {}", fmt::join(names, ", "));
  return fail(fmt::format("\"{}\" is no signal{}", signal, hint));
}

/// As the configuration's files would say it, which is read again.
Result<std::string> grace_period_text(std::string_view signal, const google::protobuf::Duration& duration) {
  constexpr std::int64_t most = 1'000'000'000;
  if (duration.seconds() < 0 || duration.seconds() > most || duration.nanos() < 0 || duration.nanos() > 999'999'999)
    return fail(fmt::format("{}: a grace period is 0 to {} seconds", signal, most));
  return core::to_string(std::chrono::seconds(duration.seconds()) + std::chrono::nanoseconds(duration.nanos()));
}

Result<void> remove(const v1::ThresholdChange& change, const EvictionSettings& in_force, ThresholdOverlay& overlay) {
  const auto& signal = change.signal();
  const bool there = change.soft() ? in_force.soft.contains(signal) : core::hard_in_force(in_force).contains(signal);
  if (!there)
    return fail(
        fmt::format("{}: it has no {} threshold that could be removed", signal, change.soft() ? "soft" : "hard"));
  if (!change.soft()) {
    overlay.hard.insert_or_assign(signal, std::nullopt);
    return {};
  }
  overlay.soft.insert_or_assign(signal, std::nullopt);
  overlay.soft_grace_period.insert_or_assign(signal, std::nullopt);
  return {};
}

Result<void> add(const v1::ThresholdChange& change, const EvictionSettings& in_force, ThresholdOverlay& overlay) {
  const auto& signal = change.signal();
  if (const auto known = check_signal(signal); !known) return known;
  if (change.has_grace_period() && !change.soft())
    return fail(fmt::format("{}: a grace period belongs to a soft threshold: say that it is one", signal));
  if (change.has_minimum_reclaim())
    overlay.minimum_reclaim.insert_or_assign(
        signal, change.minimum_reclaim().empty() ? std::nullopt : std::optional(change.minimum_reclaim()));
  if (change.value().empty()) return remove(change, in_force, overlay);
  (change.soft() ? overlay.soft : overlay.hard).insert_or_assign(signal, change.value());
  if (!change.has_grace_period()) return {};
  auto grace_period = grace_period_text(signal, change.grace_period());
  if (!grace_period) return std::unexpected(grace_period.error());
  overlay.soft_grace_period.insert_or_assign(signal, *std::move(grace_period));
  return {};
}

}  // namespace

Result<ThresholdOverlay> overlay_of(const v1::UpdateThresholdsRequest& request, const EvictionSettings& in_force) {
  if (request.changes().empty() && !request.replace() && !request.apply_staged() && !request.save())
    return fail("nothing is to be changed: name a signal and a value, such as memory.available=500Mi");
  auto overlay = request.replace() ? nothing_of(in_force) : ThresholdOverlay{};
  for (const auto& change : request.changes())
    if (const auto added = add(change, in_force, overlay); !added) return std::unexpected(added.error());
  return overlay;
}

ThresholdOrigin origin_of(const core::Threshold& threshold, const ThresholdLayers& layers,
                          const ThresholdOverlay& live) {
  using enum core::ThresholdSource;
  if (threshold.source == Derived) return {.source = "derived"};
  // Of the copy for the pods' own cgroup it is that of the original.
  const bool is_copy = threshold.source == EnforceNodeAllocatable;
  const auto signal = std::string(core::name(is_copy ? core::Signal::MemoryAvailable : threshold.signal));
  const auto found = [&](std::string source, std::string place) {
    return ThresholdOrigin{.source = is_copy ? "derived" : std::move(source), .place = std::move(place)};
  };
  const bool is_soft =
      threshold.source == EvictionSoft || !threshold.is_hard();  // the soft one's grace period may be 0
  const auto says = [&](const ThresholdOverlay& overlay) {
    return (is_soft ? overlay.soft : overlay.hard).contains(signal);
  };
  if (says(live)) return found("live", "");
  for (const auto& drop_in : layers.drop_ins | std::views::reverse)
    if (says(drop_in.overlay)) return found(drop_in.name, layers.drop_ins_at / drop_in.name);
  const bool written =
      is_soft ? layers.base.soft.contains(signal) : layers.base.hard && layers.base.hard->contains(signal);
  if (!written) return found("default", "");
  const auto place = layers.base_origins.find((is_soft ? "evictionSoft: " : "evictionHard: ") + signal);
  return found(layers.base_name, place == layers.base_origins.end() ? "" : place->second);
}

}  // namespace evictd::agent
