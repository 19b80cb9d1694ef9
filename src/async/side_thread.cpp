#include "async/side_thread.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "async/detached_thread.hpp"

namespace asio = boost::asio;

namespace evictd::async {
namespace {

using Task = std::move_only_function<void()>;

}  // namespace

/// What is to be called once the work is done, first the first. It may belong to the reactor, so the thread never holds
/// it. The reactor has something to do for as long as there is any.
struct SideThread::Waiting {
  void add(const asio::any_io_executor& reactor, Task done) {
    if (!busy) busy.emplace(reactor);
    tasks.push_back(std::move(done));
  }
  void finish() {
    auto done = std::move(tasks.front());
    tasks.pop_front();
    if (tasks.empty()) busy.reset();
    if (done) done();
  }

  std::deque<Task> tasks;
  std::optional<asio::executor_work_guard<asio::any_io_executor>> busy;
};

struct SideThread::Shared {
  std::mutex mutex;
  std::condition_variable more;
  std::deque<Task> work;
  asio::any_io_executor reactor;  // there for as long as `closed` is false
  std::weak_ptr<Waiting> waiting;
  bool closed = false;

  std::optional<Task> next() {
    std::unique_lock lock{mutex};
    more.wait(lock, [this] { return closed || !work.empty(); });
    if (closed) return std::nullopt;
    auto task = std::move(work.front());
    work.pop_front();
    return task;
  }
  void finished() {
    const std::scoped_lock lock{mutex};
    if (closed) return;
    asio::post(reactor, [waiting = waiting] {
      if (const auto there = waiting.lock()) there->finish();
    });
  }
};

SideThread::SideThread(asio::any_io_executor reactor, const std::string& name)
    : shared_{std::make_shared<Shared>()}, waiting_{std::make_shared<Waiting>()} {
  shared_->reactor = std::move(reactor);
  shared_->waiting = waiting_;
  detach_thread(name, [shared = shared_] {
    while (auto task = shared->next()) {
      (*task)();
      task.reset();
      shared->finished();
    }
  });
}

SideThread::~SideThread() {
  std::deque<Task> dropped;
  {
    const std::scoped_lock lock{shared_->mutex};
    shared_->closed = true;
    dropped.swap(shared_->work);
  }
  shared_->more.notify_one();
}

void SideThread::run(Task work, Task done) {
  waiting_->add(shared_->reactor, std::move(done));
  {
    const std::scoped_lock lock{shared_->mutex};
    shared_->work.push_back(std::move(work));
  }
  shared_->more.notify_one();
}

}  // namespace evictd::async
