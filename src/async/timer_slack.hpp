#pragma once
#include <sys/prctl.h>

#include <chrono>

namespace evictd::async {

/// For as long as this lives the kernel may end what this thread sleeps for that much later, together with something
/// else that a processor wakes for (PR_SET_TIMERSLACK, prctl(2)). A thread that is started meanwhile has that slack for
/// as long as it runs, and so have those that it starts. Threads of real-time scheduling have none.
class TimerSlack {
 public:
  /// `slack`: more than 0, and below 4.2 s, the range of the kernel on machines of 32 bits.
  explicit TimerSlack(std::chrono::nanoseconds slack) : before_{::prctl(PR_GET_TIMERSLACK)} { set(slack.count()); }
  TimerSlack(const TimerSlack&) = delete;
  TimerSlack& operator=(const TimerSlack&) = delete;
  ~TimerSlack() { set(before_); }

 private:
  /// A kernel that refuses leaves the thread as it was: then it wakes more often.
  static void set(long long nanoseconds) { ::prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(nanoseconds)); }

  int before_;  // nanoseconds; negative: it cannot be known
};

}  // namespace evictd::async
