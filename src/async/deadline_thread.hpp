#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
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

/// Does the work on a thread of its own, and waits for its result no longer than `patience`: then there is none, and
/// the thread is left to itself. Before there is a reactor, which must not wait.
template <class Work>
std::optional<std::invoke_result_t<Work>> within(std::string what, std::chrono::milliseconds patience, Work work) {
  using Value = std::invoke_result_t<Work>;
  const auto promise = std::make_shared<std::promise<Value>>();
  auto result = promise->get_future();
  DeadlineThread thread{std::move(what)};
  boost::asio::post(thread.get_executor(), [promise, work = std::move(work)]() mutable { promise->set_value(work()); });
  const bool came = result.wait_for(patience) == std::future_status::ready;
  thread.finish(came ? DeadlineThread::usual_patience : std::chrono::milliseconds{0});
  return came ? std::optional<Value>{result.get()} : std::nullopt;
}

/// What is under way still on threads that were left to themselves, for the log; empty where there is nothing. Any
/// thread.
[[nodiscard]] std::vector<std::string> left_behind();

}  // namespace evictd::async
