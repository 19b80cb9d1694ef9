#include "wake/poll_interval.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace evictd::wake {
namespace {

using namespace std::chrono_literals;

/// What sits still beyond a met threshold is not worth more: a pass has seen it, and what is done about it takes
/// longer.
constexpr core::Duration between_looks_when_met = 10ms;
/// A look may take a twentieth of a processor.
constexpr int share_of_processor = 20;
/// Over less time counters that are kept in batches seem to jump.
constexpr core::Duration rate_window = 10ms;
constexpr double margin = 1.5;
constexpr core::Duration raised_for = 1min;

/// How long it takes at least until `distance` is gone, within both limits.
core::Duration time_for(std::int64_t distance, double rate, core::Duration least, core::Duration most) {
  const double nanoseconds = std::ceil(static_cast<double>(distance) / rate * 1e9);
  if (nanoseconds >= static_cast<double>(most.count())) return std::max(least, most);
  return std::max(least, core::Duration{static_cast<core::Duration::rep>(nanoseconds)});
}

}  // namespace

std::int64_t PollInterval::highest() const {
  return levels_.empty() ? std::numeric_limits<std::int64_t>::min() : levels_.back().threshold;
}

bool PollInterval::any_hard_met() const {
  return std::ranges::any_of(levels_, [&](const auto& level) { return level.hard && available_ < level.threshold; });
}

std::int64_t PollInterval::step_of(const PollLevel& level) const {
  return std::max(settings_.step, (level.threshold - base_) / 8);
}

core::Duration PollInterval::interval_at(std::int64_t available) const {
  const auto patient = std::max(shortest_, between_looks_when_met);
  auto interval = std::max(settings_.longest, shortest_);
  const auto within = [&](std::int64_t distance, core::Duration least) {
    interval = std::min(interval, time_for(distance, rate_, least, settings_.longest));
  };
  for (const auto& level : levels_) {
    if (available >= level.threshold) {
      within(available - level.threshold, shortest_);
      continue;
    }
    within(level.threshold - available, patient);
    if (level.hard) within(std::max<std::int64_t>(0, available - (base_ - step_of(level))), patient);
  }
  return interval;
}

void PollInterval::arm(std::vector<PollLevel> levels, const Sample& sample) {
  std::ranges::sort(levels, {}, &PollLevel::threshold);
  levels_ = std::move(levels);
  if (levels_.empty()) {  // then nothing was read either
    next_ = core::Instant::max();
    return;
  }
  base_ = sample.available;
  note(sample);
  set_next(sample);
}

std::optional<PollLevel> PollInterval::look(const Sample& sample) {
  std::optional<PollLevel> news;
  for (const auto& level : levels_) {
    const bool was_met = base_ < level.threshold;
    const bool is_met = sample.available < level.threshold;
    const bool worse = level.hard && was_met && base_ - sample.available >= step_of(level);
    if (!news && (is_met != was_met || worse)) news = level;
  }
  if (news) base_ = sample.available;
  note(sample);
  set_next(sample);
  return news;
}

void PollInterval::poll_fast(core::Instant now, core::Instant until) {
  fast_until_ = std::max(fast_until_, until);
  next_ = std::min(next_, now);
}

void PollInterval::set_next(const Sample& sample) {
  interval_ = polling_fast(sample.time) ? shortest_ : interval_at(sample.available);
  next_ = levels_.empty() ? core::Instant::max() : sample.time + interval_;
}

void PollInterval::note(const Sample& sample) {
  available_ = sample.available;
  auto& kept = kept_[sample.exact ? 1 : 0];
  // The smaller of two: a look during which the thread lost its processor was not dear.
  if (sample.cost > core::Duration::zero()) kept.costs = {kept.costs[1], sample.cost};
  shortest_ = std::max(settings_.shortest, share_of_processor * std::ranges::min(kept.costs));
  note_rate(kept, sample);
}

void PollInterval::note_rate(Kept& kept, const Sample& sample) {
  if (rate_ > settings_.rate && sample.time - raised_ >= raised_for) {
    rate_ = std::max(settings_.rate, rate_ / 2);
    raised_ = sample.time;
  }
  if (kept.reference && sample.time - kept.reference->time < rate_window) return;
  if (kept.reference) {
    // One less: these are whole units.
    const auto taken = static_cast<double>(kept.reference->available) - static_cast<double>(sample.available) - 1;
    const double seen = taken / std::chrono::duration<double>(sample.time - kept.reference->time).count();
    if (seen > rate_) {
      rate_ = std::max(rate_, std::min(seen * margin, settings_.fastest));
      raised_ = sample.time;
    }
  }
  kept.reference = sample;
}

}  // namespace evictd::wake
