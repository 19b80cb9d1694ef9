#include "proxy/running_calls.hpp"

namespace evictd::proxy {

RunningCalls::Ticket RunningCalls::begin() {
  const std::lock_guard lock(mutex_);
  if (closed_) return Ticket{nullptr};
  ++running_;
  return Ticket{this};
}

void RunningCalls::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
}

bool RunningCalls::wait_until_none(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return none_left_.wait_for(lock, time, [this] { return running_ == 0; });
}

void RunningCalls::ended() {
  // Notified under the lock: once it is free, the waiting thread may destroy this.
  const std::lock_guard lock(mutex_);
  if (--running_ == 0) none_left_.notify_all();
}

}  // namespace evictd::proxy
