#pragma once
#include <sys/epoll.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>
#include <vector>

#include "core/duration.hpp"

namespace evictd::async {

/// A turn of the reactor: what it does between two looks at the kernel. Nothing else is seen meanwhile.
struct Turn {
  core::Instant begin{};
  core::Instant end{};            ///< of one under way: when it was looked at
  core::Duration on_processor{};  ///< the rest it waited: for a disk, for a call, for a processor
  const char* doing = "no pass";  ///< what was begun in it last, for people
};

/// The turns of the thread that made this object, as its calls of wait_for_events() part them. Costs two looks at the
/// clock and one at the thread's processor time a turn.
class Turns {
 public:
  /// Only turns longer than `bound` are kept, and only so many: a storm of them is no news.
  explicit Turns(core::Duration bound) : bound_{bound} { current_ = this; }
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;
  ~Turns() { current_ = nullptr; }

  /// Sleeps until a long turn has ended that take() has not had yet, until `due`, or until it is to stop. Not on the
  /// thread of the turns.
  void wait_until(core::Instant due, const std::stop_token& stop);
  /// The long turns that ended since the last call. From any thread, as the next.
  [[nodiscard]] std::vector<Turn> take();
  /// The one under way; what it was on a processor is not known.
  [[nodiscard]] std::optional<Turn> under_way() const;

  /// The most processor time of all turns so far. On the thread of the turns.
  [[nodiscard]] core::Duration busiest() const { return busiest_; }

  /// Names what the turn of this thread is at; a literal. Where turns are not measured it does nothing.
  static void doing(const char* what) {
    if (current_ != nullptr) current_->doing_ = what;
  }

 private:
  friend int wait_for_events(int epoll, epoll_event* events, int capacity, int timeout);
  void began();
  void ended();

  static constexpr std::size_t kept = 16;
  static constexpr core::Instant::rep none = 0;
  static thread_local Turns* current_;

  core::Duration bound_;
  std::atomic<core::Instant::rep> begin_ = none;  // of the turn under way
  std::atomic<const char*> doing_ = Turn{}.doing;
  core::Duration processor_time_{};  // of the thread, when the turn began
  core::Duration busiest_{};
  std::mutex mutex_;
  std::condition_variable_any long_one_ended_;
  std::vector<Turn> long_;
};

/// epoll_wait(2), by which the reactor waits (asio.cpp): it ends one turn and begins the next.
int wait_for_events(int epoll, epoll_event* events, int capacity, int timeout);

}  // namespace evictd::async
