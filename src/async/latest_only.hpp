#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/post.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace evictd::async {

/// Writes values on another executor, one after the other, of those that wait only the latest: however long a write
/// takes, one value waits at most. What is given to it before its executor ends is written. Any thread.
template <class Value>
class LatestOnly {
 public:
  using Write = std::function<void(const Value&)>;

  /// `write` must own all that it touches: it may be under way when this has gone.
  LatestOnly(boost::asio::any_io_executor workers, Write write)
      : workers_{std::move(workers)}, state_{std::make_shared<State>(std::move(write))} {}

  void write(Value value) {
    const std::lock_guard lock{state_->mutex};
    const bool is_posted = state_->waiting.has_value();  // what was to write the earlier one writes this one
    state_->waiting = std::move(value);
    if (!is_posted) boost::asio::post(workers_, [state = state_] { state->write_waiting(); });
  }

 private:
  struct State {
    explicit State(Write given) : write{std::move(given)} {}

    void write_waiting() {
      std::unique_lock lock{mutex};
      const auto value = *std::exchange(waiting, std::nullopt);
      lock.unlock();
      write(value);
    }

    const Write write;
    std::mutex mutex;
    std::optional<Value> waiting;
  };

  boost::asio::any_io_executor workers_;
  std::shared_ptr<State> state_;
};

}  // namespace evictd::async
