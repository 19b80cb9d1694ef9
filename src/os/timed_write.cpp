#include "os/timed_write.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <ctime>

#ifndef sigev_notify_thread_id  // glibc before 2.38 has no name for it
#define sigev_notify_thread_id _sigev_un._tid
#endif

namespace evictd::os {
namespace {

int break_off_signal() { return SIGRTMIN + 3; }

void do_nothing(int) {}

/// Without SA_RESTART, so that a call that it interrupts ends. The handler is the whole process's, and stays.
bool handle_signal() {
  static const bool handled = [] {
    struct sigaction action{};
    action.sa_handler = do_nothing;
    sigemptyset(&action.sa_mask);
    return ::sigaction(break_off_signal(), &action, nullptr) == 0;
  }();
  if (!handled) return false;
  sigset_t taken;
  sigemptyset(&taken);
  sigaddset(&taken, break_off_signal());
  return pthread_sigmask(SIG_UNBLOCK, &taken, nullptr) == 0;
}

/// Signals this thread again and again: a single signal may come just before the call that it is for.
class Alarm {
 public:
  explicit Alarm(core::Duration after) {
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = break_off_signal();
    event.sigev_notify_thread_id = ::gettid();
    made_ = ::timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0;
    if (!made_) return;
    const auto nanoseconds = std::max<std::int64_t>(std::chrono::nanoseconds(after).count(), 1);
    const timespec time{.tv_sec = static_cast<time_t>(nanoseconds / 1'000'000'000),
                        .tv_nsec = static_cast<long>(nanoseconds % 1'000'000'000)};
    const itimerspec times{.it_interval = time, .it_value = time};
    set_ = ::timer_settime(timer_, 0, &times, nullptr) == 0;
  }
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;
  ~Alarm() {
    if (made_) ::timer_delete(timer_);
  }

  [[nodiscard]] bool is_set() const { return set_; }

 private:
  timer_t timer_{};
  bool made_ = false;
  bool set_ = false;
};

}  // namespace

int write_within(int descriptor, std::string_view text, core::Duration patience) {
  if (!handle_signal()) return errno;
  const Alarm alarm{patience};
  if (!alarm.is_set()) return errno;
  return ::write(descriptor, text.data(), text.size()) >= 0 ? 0 : errno;
}

}  // namespace evictd::os
