#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace evictd::async {

/// A thread of its own for work that a disk or a name service may hold up, one piece after the other.
///
/// Its owner does not wait for it without a limit: where a piece of work hangs, the thread is left to itself when the
/// owner goes. What is posted must therefore own all that it touches; its result goes to the reactor, which must not be
/// destroyed while left_behind() names a thread: the process ends by _exit() then (commands/run.cpp).
class DeadlineThread {
 public:
  /// For what is under way when the owner goes. A disk that works is through with a small file in far less.
  static constexpr std::chrono::milliseconds usual_patience{500};

  /// `what` says for people what is done here: "saving thresholds".
  explicit DeadlineThread(std::string what);
  /// As finish().
  ~DeadlineThread();
  DeadlineThread(const DeadlineThread&) = delete;
  DeadlineThread& operator=(const DeadlineThread&) = delete;

  /// Runs what is posted to it on the thread. Not after finish().
  [[nodiscard]] boost::asio::any_io_executor get_executor() const;

  /// Waits until all that was posted is done, and ends the thread. False: it was not done in time; what is under way is
  /// left alone, and what had not begun does not. A second call does nothing.
  bool finish(std::chrono::milliseconds patience = usual_patience);

 private:
  struct State;
  std::shared_ptr<State> state_;  // the thread shares it
};

/// What was under way on threads that were left to themselves, for the log; empty where there are none. Any thread.
[[nodiscard]] std::vector<std::string> left_behind();

}  // namespace evictd::async
