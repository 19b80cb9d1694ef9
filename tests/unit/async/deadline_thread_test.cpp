#include "async/deadline_thread.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <thread>

#include "async/latest_only.hpp"
#include "async/offload.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::async::deadline_thread_test {
namespace {

constexpr auto long_enough = 60s;

/// Work that hangs until it is let go, as if a disk did not answer.
class Hang {
 public:
  /// Begins to hang there, and returns once it does.
  explicit Hang(const asio::any_io_executor& where) {
    const auto begun = std::make_shared<std::promise<void>>();
    asio::post(where, [begun, over = over_] {
      begun->set_value();
      over.wait();
    });
    begun->get_future().wait();
  }
  ~Hang() { end(); }
  void end() {
    if (!std::exchange(ended_, true)) promise_.set_value();
  }

 private:
  std::promise<void> promise_;
  std::shared_future<void> over_ = promise_.get_future().share();
  bool ended_ = false;
};

/// What came of one piece of work.
struct Outcome {
  void wait_for(asio::io_context& reactor, const asio::any_io_executor& workers, std::weak_ptr<const void> owner,
                std::chrono::milliseconds deadline) {
    offload(
        reactor.get_executor(), workers, std::move(owner), [] { return 7; }, deadline,
        [this](std::optional<int> value) { done.push_back(value); }, [this](int value) { late.push_back(value); });
  }

  std::vector<std::optional<int>> done;
  std::vector<int> late;
};

}  // namespace

TEST_CASE("a result that is there in time comes to the reactor, once") {
  asio::io_context reactor{1};
  DeadlineThread thread{"working"};
  const auto owner = std::make_shared<int>();
  Outcome outcome;
  outcome.wait_for(reactor, thread.get_executor(), owner, long_enough);
  reactor.run();
  CHECK(outcome.done == std::vector<std::optional<int>>{7});
  CHECK(outcome.late.empty());
  CHECK(thread.finish());
}

TEST_CASE("work that hangs is over for its caller at the deadline, and what comes of it later is late") {
  asio::io_context reactor{1};
  DeadlineThread thread{"working"};
  const auto owner = std::make_shared<int>();
  Hang hang{thread.get_executor()};
  Outcome outcome;
  outcome.wait_for(reactor, thread.get_executor(), owner, 1ms);
  while (outcome.done.empty()) reactor.run_one();
  CHECK(outcome.done == std::vector<std::optional<int>>{std::nullopt});
  hang.end();
  CHECK(thread.finish(long_enough));
  reactor.restart();
  reactor.run();
  CHECK(outcome.done.size() == 1);
  CHECK(outcome.late == std::vector<int>{7});
}

TEST_CASE("an owner that has gone hears of nothing any more") {
  asio::io_context reactor{1};
  DeadlineThread thread{"working"};
  Outcome outcome;
  outcome.wait_for(reactor, thread.get_executor(), std::make_shared<int>(), long_enough);
  CHECK(thread.finish(long_enough));
  reactor.run();
  CHECK(outcome.done.empty());
  CHECK(outcome.late.empty());
}

TEST_CASE("what was posted is done before the thread ends") {
  int done = 0;
  {
    DeadlineThread thread{"working"};
    for (int i = 0; i < 100; ++i) asio::post(thread.get_executor(), [&done] { ++done; });
    CHECK(thread.finish(long_enough));
    CHECK(thread.finish());
  }
  CHECK(done == 100);
}

TEST_CASE("a thread that hangs is left behind, and what had not begun does not") {
  const auto began = std::make_shared<std::atomic<bool>>(false);
  DeadlineThread thread{"hanging in a test"};
  const Hang hang{thread.get_executor()};
  asio::post(thread.get_executor(), [began] { *began = true; });
  CHECK_FALSE(thread.finish(1ms));
  const auto left = left_behind();
  CHECK(std::ranges::find(left, "hanging in a test") != left.end());
  CHECK_FALSE(*began);
}

TEST_CASE("of the values that wait to be written only the latest is") {
  std::vector<std::string> written;
  DeadlineThread thread{"writing"};
  LatestOnly<std::string> latest{thread.get_executor(),
                                 [&written](const std::string& value) { written.push_back(value); }};
  {
    const Hang hang{thread.get_executor()};
    for (const auto* value : {"a", "b", "c"}) latest.write(value);
  }
  CHECK(thread.finish(long_enough));
  CHECK(written == std::vector<std::string>{"c"});
}

TEST_CASE("a result is waited for until the deadline, and no longer") {
  CHECK(within("counting", long_enough, [] { return 7; }) == 7);
  CHECK(within("finding nothing", long_enough, [] { return std::optional<int>{}; }).has_value());
  std::promise<void> over;
  const auto let_go = std::make_shared<std::shared_future<void>>(over.get_future());
  CHECK_FALSE(within("hanging", 10ms, [let_go] {
    let_go->wait();
    return std::optional<int>{7};
  }));
  const auto left = left_behind();
  CHECK(std::ranges::find(left, "hanging") != left.end());
  over.set_value();
  // What has ended after all hangs no more.
  const auto has_ended = [] { return std::ranges::count(left_behind(), "hanging") == 0; };
  for (int look = 0; look < 10'000 && !has_ended(); ++look) std::this_thread::sleep_for(1ms);
  CHECK(has_ended());
}

}  // namespace evictd::async::deadline_thread_test
