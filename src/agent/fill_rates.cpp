#include "agent/fill_rates.hpp"

#include <chrono>

#include "core/signal.hpp"

namespace evictd::agent {
namespace {

using namespace std::chrono_literals;

constexpr core::Duration window = 5s;
/// Passes may follow each other within a millisecond: no more than some twenty readings are kept.
constexpr core::Duration spacing = 250ms;
/// Over less time than this a rate is noise.
constexpr core::Duration shortest_between_rates = 500ms;
/// What was before this says nothing of now: the timer alone looks every 10 s.
constexpr core::Duration longest = 30s;

}  // namespace

/// The newest reading replaces the one before it while that is too near to the third.
void FillRates::observe(const core::Observations& observations, core::Instant now) {
  const auto count = readings_.size();
  if (count >= 2 && readings_[count - 1].time - readings_[count - 2].time < spacing) readings_.pop_back();
  readings_.push_back({now, observations});
  while (readings_.size() > 1 && (readings_[1].time <= now - window || readings_[0].time < now - longest))
    readings_.pop_front();
}

std::optional<double> FillRates::rate(core::Signal signal) const {
  if (readings_.empty()) return std::nullopt;
  const auto& newest = readings_.back();
  const auto& latest = newest.observations[signal];
  if (!latest) return std::nullopt;
  for (const auto& reading : readings_) {
    const auto time = newest.time - reading.time;
    const auto& before = reading.observations[signal];
    if (!before) continue;
    if (time < shortest_between_rates) return std::nullopt;
    return static_cast<double>(before->available - latest->available) / std::chrono::duration<double>(time).count();
  }
  return std::nullopt;
}

}  // namespace evictd::agent
