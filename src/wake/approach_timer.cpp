#include "wake/approach_timer.hpp"

#include <algorithm>
#include <utility>

#include "core/signal.hpp"

namespace evictd::wake {

void ApproachTimer::arm(const Arming& arming) {
  bool is_near = false;
  pods_go_ = false;
  for (const auto& level : arming.levels) {
    if (!core::is_memory(level.signal)) continue;
    pods_go_ = pods_go_ || (level.hard && level.available < level.threshold && !arming.nobody_goes);
    is_near = is_near || level.available - level.threshold < std::max(near, level.threshold);
  }
  is_near = is_near && !pods_go_;
  const bool was_near = std::exchange(is_near_, is_near);
  if (is_near && !was_near) wait();
  if (!is_near) timer_.cancel();
  recede_if_far();
}

void ApproachTimer::approaches() {
  sampler_is_near_ = true;
  tell();
}

void ApproachTimer::recedes() {
  sampler_is_near_ = false;
  recede_if_far();
}

void ApproachTimer::wait() {
  timer_.expires_after(between);
  timer_.async_wait([this](boost::system::error_code error) {
    if (error || !is_near_) return;
    tell();
    wait();
  });
}

void ApproachTimer::tell() {
  told_ = true;
  listener_.approaches();
}

/// The sampler, which wakes up in between and falls asleep again, may not take back what the passes say.
void ApproachTimer::recede_if_far() {
  if (!told_ || is_near_ || pods_go_ || sampler_is_near_) return;
  told_ = false;
  listener_.recedes();
}

}  // namespace evictd::wake
