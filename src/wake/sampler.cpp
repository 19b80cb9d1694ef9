#include "wake/sampler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "core/duration.hpp"
#include "core/signal.hpp"
#include "os/now.hpp"
#include "wake/signal_text.hpp"
#include "wake/wakes.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::wake {
namespace {

constexpr core::Duration between_failures = 1s;
/// After so long what is hidden may be anything.
constexpr core::Duration hidden_is_known_for = 1s;
/// An exact look is some ten times as dear as a cheap one (memory.stat, 8 µs; usage, 0.6 µs): it has to make as many
/// unnecessary.
constexpr std::int64_t looks_saved = 8;

using os::now;

/// For people: two digits or three.
std::string interval_text(core::Duration interval) {
  const core::Duration digit = interval >= 10s ? 1s : interval >= 1s ? 100ms : interval >= 10ms ? 1ms : 100us;
  return "every " + core::to_string(interval / digit * digit);
}

std::string rate_text(core::Signal signal, double rate) {
  auto amount = static_cast<std::int64_t>(std::llround(rate));
  if (!core::is_counted(signal)) amount = std::max<std::int64_t>(amount >> 20, 1) << 20;
  return amount_text(signal, amount) + "/s";
}

}  // namespace

Sampler::Sampler(const asio::any_io_executor& reactor, Wakes& wakes, std::vector<Gauge> gauges) : timer_{reactor} {
  for (auto& gauge : gauges)
    watched_.push_back({.gauge = std::move(gauge), .notifier = {wakes, core::WakeSource::Sampler}});
}

void Sampler::arm(const Arming& arming) {
  for (auto& watched : watched_) arm(watched, arming);
  nobody_goes_ = arming.nobody_goes;
  tell_of_distance(false, false);  // without levels nothing looks any more
  schedule();
}

void Sampler::arm(Watched& watched, const Arming& arming) {
  std::vector<PollLevel> levels;
  std::int64_t available = 0;
  auto time = arming.time;
  watched.level.reset();
  for (const auto& level : arming.levels) {
    if (level.signal != watched.gauge.signal) continue;
    levels.push_back({level.threshold, level.hard});
    available = level.available;
    time = level.time.value_or(arming.time);
    // The first to be met.
    if (level.usage) watched.level = std::min(watched.level.value_or(level.usage->bytes), level.usage->bytes);
  }
  std::ranges::sort(levels, {}, &PollLevel::threshold);
  // The same reading again: what was seen since is newer.
  if (time <= watched.armed && levels == watched.poll.levels()) return;
  watched.armed = time;
  watched.unread = false;
  watched.poll.arm(std::move(levels), {.available = available, .time = time});
  set_due(watched, time, !watched.poll.any_met());
}

void Sampler::poll_fast(core::Duration time) {
  const auto begin = now();
  for (auto& watched : watched_) {
    if (!core::is_memory(watched.gauge.signal) || watched.poll.levels().empty()) continue;
    watched.poll.poll_fast(begin, begin + time);
    watched.due = watched.poll.next();
  }
  schedule();
}

/// `far`: no threshold is met, whatever is hidden.
void Sampler::set_due(Watched& watched, core::Instant looked, bool far) {
  const auto& gauge = watched.gauge;
  watched.asleep =
      far && !watched.poll.levels().empty() && gauge.guarded && gauge.guarded() && !watched.poll.polling_fast(looked);
  watched.due = watched.asleep ? looked + gauge.pace.longest : watched.poll.next();
  watched.interval = watched.asleep ? gauge.pace.longest : watched.poll.interval();
}

/// Whether the cheap look is as good as the exact one.
bool Sampler::suffices(const Watched& watched, std::int64_t at_least, core::Instant time) {
  const auto& poll = watched.poll;
  if (at_least < poll.highest()) return false;  // something may be met
  if (poll.interval_at(at_least) >= watched.gauge.pace.longest) return true;
  if (watched.gauge.guarded && watched.gauge.guarded()) return true;
  if (!watched.hidden || time - watched.hidden->time >= hidden_is_known_for) return false;
  const auto then = watched.hidden->at_least;
  // All that was taken since may be hidden as well.
  const auto hidden = watched.hidden->exact - then + std::max<std::int64_t>(0, then - at_least);
  return hidden / looks_saved <= at_least - poll.highest();
}

std::optional<Sample> Sampler::read(Watched& watched) {
  const auto begin = now();
  const auto sample = [begin](std::int64_t available, bool exact) {
    return Sample{.available = available, .time = begin, .exact = exact, .cost = now() - begin};
  };
  const auto& [signal, pace, probe, guarded] = watched.gauge;
  const auto at_least = probe->available_at_least(signal);
  if (at_least && suffices(watched, *at_least, begin)) return sample(*at_least, false);
  const auto available = probe->available(signal);
  if (!available) return std::nullopt;
  if (at_least) watched.hidden = {.time = begin, .exact = *available, .at_least = *at_least};
  return sample(*available, true);
}

/// What is read beside the reactor is seen when it comes. Until then it is as if it could not be read.
void Sampler::look(Watched& watched) {
  if (!watched.gauge.probe->takes_time()) return see(watched);
  watched.interval = std::min(between_failures, watched.gauge.pace.longest);
  watched.due = now() + watched.interval;
  watched.gauge.probe->look(watched.gauge.signal, [this, &watched, alive = std::weak_ptr(alive_)] {
    if (alive.expired() || watched.poll.levels().empty()) return;
    see(watched);
    schedule();
  });
}

void Sampler::see(Watched& watched) {
  const auto sample = read(watched);
  if (!sample) {
    watched.interval = std::min(between_failures, watched.gauge.pace.longest);
    watched.due = now() + watched.interval;
    return;
  }
  ++watched.looks;
  if (const auto news = watched.poll.look(*sample)) {
    watched.unread = true;
    watched.notifier.wake(threshold_text(watched.gauge.signal, news->threshold));
  }
  set_due(watched, sample->time, !sample->exact);
}

/// In a hurry, which need not be the node's own, it is as near as the last look saw. One that is met is no further
/// away: a soft one is for as long as its grace period runs, and a hard one may come after it.
bool Sampler::is_near(const Watched& watched) {
  if (!core::is_memory(watched.gauge.signal) || watched.poll.levels().empty() || watched.asleep) return false;
  const auto left = watched.poll.interval_by_distance();
  return watched.poll.any_met() || (left <= near && left < watched.gauge.pace.longest);
}

/// While pods go for a hard threshold one pass follows the other.
bool Sampler::awaits_pass(const Watched& watched) const {
  if (!core::is_memory(watched.gauge.signal) || watched.poll.levels().empty()) return false;
  return watched.unread || (watched.poll.any_hard_met() && !nobody_goes_);
}

void Sampler::look_at_due() {
  const auto time = now();
  bool approaches = false;
  bool too_near_now = false;
  for (auto& watched : watched_) {
    if (watched.due == core::Instant::max() || watched.due - watched.interval / 4 > time) continue;
    look(watched);
    if (!is_near(watched)) continue;
    approaches = true;
    too_near_now = too_near_now || watched.poll.interval_by_distance() <= too_near;
  }
  tell_of_distance(approaches, too_near_now);
}

/// Of two signals of memory one may be crossed: then nothing is to come before the pass.
void Sampler::tell_of_distance(bool approaches, bool too_near) {
  const auto awaits = [this](const Watched& watched) { return awaits_pass(watched); };
  if (approaches && std::ranges::none_of(watched_, awaits)) {
    told_near_ = true;
    for (auto* listener : listeners_)
      if (!too_near || listener->is_quick()) listener->approaches();
  } else if (told_near_ && std::ranges::none_of(watched_, is_near)) {
    told_near_ = false;
    for (auto* listener : listeners_) listener->recedes();
  }
}

void Sampler::schedule() {
  if (watched_.empty()) return;
  const auto due = std::ranges::min_element(watched_, {}, &Watched::due)->due;
  if (due == scheduled_) return;
  scheduled_ = due;
  if (due == core::Instant::max()) {
    timer_.cancel();
    return;
  }
  timer_.expires_at(due);
  timer_.async_wait([this](boost::system::error_code error) {
    if (error) return;  // set anew, or `this` is gone
    scheduled_ = core::Instant::max();
    look_at_due();
    schedule();
  });
}

std::vector<SourceStatus> Sampler::status() const {
  std::vector<SourceStatus> result;
  for (const auto& watched : watched_) {
    if (watched.poll.levels().empty()) continue;
    const auto signal = watched.gauge.signal;
    auto& status = result.emplace_back(
        watched.notifier.status(fmt::format("sampler {}", core::name(signal)), interval_text(watched.interval)));
    status.level = watched.level;
    status.detail =
        fmt::format("{}taken at most at {}; {} looks", watched.asleep ? "the kernel watches from afar; " : "",
                    rate_text(signal, watched.poll.rate()), watched.looks);
  }
  if (result.empty()) result.push_back({.name = "sampler", .state = "waiting: no level yet"});
  return result;
}

}  // namespace evictd::wake
