#include "async/deadline_thread.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace asio = boost::asio;

namespace evictd::async {
namespace {

struct LeftBehind {
  std::mutex mutex;
  std::vector<std::string> what;
};

LeftBehind& all_left_behind() {
  static LeftBehind left;
  return left;
}

}  // namespace

struct DeadlineThread::State {
  explicit State(std::string name) : what{std::move(name)} {}

  std::string what;
  asio::io_context context{1};
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work{context.get_executor()};
  std::thread thread;
  std::mutex mutex;
  std::condition_variable ended;
  bool has_ended = false;
};

DeadlineThread::DeadlineThread(std::string what) : state_{std::make_shared<State>(std::move(what))} {
  state_->thread = std::thread([state = state_] {
    state->context.run();
    const std::lock_guard lock{state->mutex};
    state->has_ended = true;
    state->ended.notify_all();
  });
}

DeadlineThread::~DeadlineThread() { finish(); }

asio::any_io_executor DeadlineThread::get_executor() const { return state_->context.get_executor(); }

bool DeadlineThread::finish(std::chrono::milliseconds patience) {
  auto& state = *state_;
  if (!state.thread.joinable()) return true;
  state.work.reset();
  std::unique_lock lock{state.mutex};
  const bool ended = state.ended.wait_for(lock, patience, [&] { return state.has_ended; });
  lock.unlock();
  if (ended) {
    state.thread.join();
    return true;
  }
  state.context.stop();
  state.thread.detach();
  auto& left = all_left_behind();
  const std::lock_guard list_lock{left.mutex};
  left.what.push_back(state.what);
  return false;
}

std::vector<std::string> left_behind() {
  auto& left = all_left_behind();
  const std::lock_guard lock{left.mutex};
  return left.what;
}

}  // namespace evictd::async
