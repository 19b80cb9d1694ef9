#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
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

/// What was under way on threads that were left to themselves, for the log; empty where there are none. Any thread.
[[nodiscard]] std::vector<std::string> left_behind();

/// A result that is made on another thread and waited for on the reactor until a deadline.
///
/// `done` is called on the reactor, once: with the result, or with nothing once the deadline has passed; then the late
/// result goes to `late`, if there is one. Neither is called when `owner`, which is looked at on the reactor, has gone.
template <class Work, class Done, class Late>
void run_beside(const boost::asio::any_io_executor& reactor, const boost::asio::any_io_executor& workers,
                std::weak_ptr<const void> owner, Work work, std::chrono::milliseconds deadline, Done done, Late late) {
  struct Wait {
    boost::asio::steady_timer timer;
    bool is_over = false;  // `done` was called
    Done done;
    Late late;
  };
  auto wait =
      std::make_shared<Wait>(boost::asio::steady_timer{reactor, deadline}, false, std::move(done), std::move(late));
  wait->timer.async_wait([wait, owner](const boost::system::error_code& cancelled) {
    if (cancelled || owner.expired() || std::exchange(wait->is_over, true)) return;
    wait->done(std::nullopt);
  });
  boost::asio::post(
      workers, [reactor, wait = std::move(wait), owner = std::move(owner), work = std::move(work)]() mutable {
        auto result = std::optional(work());
        boost::asio::post(reactor,
                          [wait = std::move(wait), owner = std::move(owner), result = std::move(result)]() mutable {
                            wait->timer.cancel();
                            if (owner.expired()) return;
                            if (std::exchange(wait->is_over, true))
                              wait->late(*std::move(result));
                            else
                              wait->done(std::move(result));
                          });
      });
}

}  // namespace evictd::async
