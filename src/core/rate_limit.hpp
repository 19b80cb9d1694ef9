#pragma once
#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "core/duration.hpp"

namespace evictd::core {

/// At most so many a minute, and for a while fewer.
class RateLimit {
 public:
  struct Cap {
    std::size_t left = 0;
    Instant until;

    friend bool operator==(const Cap&, const Cap&) = default;
  };
  /// What a restart would have to learn anew.
  struct State {
    std::optional<Cap> cap{};
    std::deque<Instant> recent{};  ///< evictions

    friend bool operator==(const State&, const State&) = default;
  };

  /// 0: no limit.
  explicit RateLimit(std::size_t per_minute) : per_minute_{per_minute} {}

  /// In the minute that begins now at most so many; 0: no such cap.
  void cap(std::size_t count, Instant now) {
    state_.cap.reset();
    if (count > 0) state_.cap = Cap{.left = count, .until = now + window};
  }

  void count(Instant now) {
    if (per_minute_ > 0) state_.recent.push_back(now);
    if (state_.cap && state_.cap->left > 0) --state_.cap->left;
  }
  /// Whether it is the cap that allows nothing more.
  [[nodiscard]] bool is_capped(Instant now) const {
    return state_.cap && state_.cap->left == 0 && now < state_.cap->until;
  }
  /// Until when nothing more is allowed; absent: it is now.
  [[nodiscard]] std::optional<Instant> closed_until(Instant now) {
    if (is_capped(now)) return state_.cap->until;
    while (!state_.recent.empty() && state_.recent.front() + window <= now) state_.recent.pop_front();
    if (per_minute_ == 0 || state_.recent.size() < per_minute_) return std::nullopt;
    return state_.recent[state_.recent.size() - per_minute_] + window;
  }

  [[nodiscard]] const State& state() const { return state_; }
  void restore(State state) { state_ = std::move(state); }

 private:
  static constexpr std::chrono::minutes window{1};

  std::size_t per_minute_;
  State state_;
};

}  // namespace evictd::core
