#pragma once
#include <cstddef>
#include <deque>
#include <optional>

#include "core/duration.hpp"

namespace evictd::core {

/// At most so many a minute, and for a while fewer.
class RateLimit {
 public:
  /// 0: no limit.
  explicit RateLimit(std::size_t per_minute) : per_minute_{per_minute} {}

  /// In the minute that begins now at most so many; 0: no such cap.
  void cap(std::size_t count, Instant now) {
    cap_.reset();
    if (count > 0) cap_ = Cap{.left = count, .until = now + window};
  }

  void count(Instant now) {
    if (per_minute_ > 0) recent_.push_back(now);
    if (cap_ && cap_->left > 0) --cap_->left;
  }
  /// Whether it is the cap that allows nothing more.
  [[nodiscard]] bool is_capped(Instant now) const { return cap_ && cap_->left == 0 && now < cap_->until; }
  /// Until when nothing more is allowed; absent: it is now.
  [[nodiscard]] std::optional<Instant> closed_until(Instant now) {
    if (is_capped(now)) return cap_->until;
    while (!recent_.empty() && recent_.front() + window <= now) recent_.pop_front();
    if (per_minute_ == 0 || recent_.size() < per_minute_) return std::nullopt;
    return recent_[recent_.size() - per_minute_] + window;
  }

 private:
  static constexpr std::chrono::minutes window{1};
  struct Cap {
    std::size_t left = 0;
    Instant until;
  };

  std::size_t per_minute_;
  std::optional<Cap> cap_;
  std::deque<Instant> recent_;
};

}  // namespace evictd::core
