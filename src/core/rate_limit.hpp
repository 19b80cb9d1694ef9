#pragma once
#include <cstddef>
#include <deque>
#include <optional>

#include "core/duration.hpp"

namespace evictd::core {

/// At most so many a minute.
class RateLimit {
 public:
  /// 0: no limit.
  explicit RateLimit(std::size_t per_minute) : per_minute_{per_minute} {}

  void count(Instant now) {
    if (per_minute_ > 0) recent_.push_back(now);
  }
  /// Until when nothing more is allowed; absent: it is now.
  [[nodiscard]] std::optional<Instant> closed_until(Instant now) {
    constexpr std::chrono::minutes window{1};
    while (!recent_.empty() && recent_.front() + window <= now) recent_.pop_front();
    if (per_minute_ == 0 || recent_.size() < per_minute_) return std::nullopt;
    return recent_[recent_.size() - per_minute_] + window;
  }

 private:
  std::size_t per_minute_;
  std::deque<Instant> recent_;
};

}  // namespace evictd::core
