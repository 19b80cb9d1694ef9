#include "async/deadline_thread.hpp"

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace asio = boost::asio;

namespace evictd::async {
namespace {

/// What threads do that were left to themselves and have not ended since.
class LeftBehind {
 public:
  void add(const std::string& what) {
    const std::lock_guard lock{mutex_};
    what_.push_back(what);
  }
  void remove(const std::string& what) {
    const std::lock_guard lock{mutex_};
    if (const auto found = std::ranges::find(what_, what); found != what_.end()) what_.erase(found);
  }
  [[nodiscard]] std::vector<std::string> what() const {
    const std::lock_guard lock{mutex_};
    return what_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> what_;
};

/// Never destroyed: such a thread may end while the process does.
LeftBehind& all_left_behind() {
  static auto& left = *new LeftBehind;
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
  bool left_behind = false;
};

DeadlineThread::DeadlineThread(std::string what) : state_{std::make_shared<State>(std::move(what))} {
  state_->thread = std::thread([state = state_]() mutable {
    state->context.run();
    std::unique_lock lock{state->mutex};
    state->has_ended = true;
    state->ended.notify_all();
    const bool left_behind = state->left_behind;
    lock.unlock();
    if (!left_behind) return;
    const auto what = state->what;
    state.reset();  // with what had not begun, which may know the reactor
    all_left_behind().remove(what);
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
  if (!ended) {
    state.left_behind = true;
    all_left_behind().add(state.what);
  }
  lock.unlock();
  if (ended) {
    state.thread.join();
    return true;
  }
  state.context.stop();
  state.thread.detach();
  return false;
}

std::vector<std::string> left_behind() { return all_left_behind().what(); }

}  // namespace evictd::async
