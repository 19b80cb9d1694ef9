#include "async/side_thread.hpp"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <csignal>
#include <future>
#include <memory>
#include <string>
#include <thread>

namespace evictd::async::side_thread_test {
namespace {

using namespace std::chrono_literals;

/// Called on a thread: says when that thread has ended.
void tell_end_of_thread(std::promise<void>& ended) {
  struct Teller {
    ~Teller() {
      if (ended != nullptr) ended->set_value();
    }
    std::promise<void>* ended = nullptr;
  };
  thread_local Teller teller;
  teller.ended = &ended;
}

}  // namespace

TEST_CASE("work is done beside the reactor, in its order, and the reactor hears of each piece") {
  boost::asio::io_context reactor{1};
  SideThread thread{reactor.get_executor(), "test"};
  std::string worked;
  std::string heard;
  const auto reactors = std::this_thread::get_id();
  for (const char piece : {'a', 'b', 'c'})
    thread.run([&worked, piece, reactors] { worked += std::this_thread::get_id() == reactors ? '!' : piece; },
               [&heard, piece] { heard += piece; });
  reactor.run();
  CHECK(worked == "abc");
  CHECK(heard == "abc");
}

TEST_CASE("a thread that is held up is left to itself, and what it comes to is dropped") {
  std::promise<void> release;
  std::promise<void> ended;
  std::promise<void> begun;
  const auto owned = std::make_shared<int>(1);
  bool heard = false;
  {
    boost::asio::io_context reactor{1};
    SideThread thread{reactor.get_executor(), "test"};
    thread.run(
        [&ended, &begun, held = release.get_future().share()] {
          tell_end_of_thread(ended);
          begun.set_value();
          held.wait();
        },
        [&heard, owned] { heard = true; });
    thread.run([&heard, owned] { heard = true; }, {});
    begun.get_future().wait();
    CHECK(owned.use_count() == 3);
  }
  CHECK(owned.use_count() == 1);  // though the thread is still there
  release.set_value();
  CHECK(ended.get_future().wait_for(10s) == std::future_status::ready);
  CHECK_FALSE(heard);
}

TEST_CASE("a thread without work ends with its owner") {
  std::promise<void> ended;
  boost::asio::io_context reactor{1};
  {
    SideThread thread{reactor.get_executor(), "test"};
    thread.run([&ended] { tell_end_of_thread(ended); }, {});
    reactor.run();
  }
  CHECK(ended.get_future().wait_for(10s) == std::future_status::ready);
}

TEST_CASE("a side thread takes no signals") {
  boost::asio::io_context reactor{1};
  SideThread thread{reactor.get_executor(), "test"};
  sigset_t blocked{};
  thread.run([&blocked] { pthread_sigmask(SIG_SETMASK, nullptr, &blocked); }, {});
  reactor.run();
  CHECK(sigismember(&blocked, SIGTERM) == 1);
  sigset_t own{};
  pthread_sigmask(SIG_SETMASK, nullptr, &own);
  CHECK(sigismember(&own, SIGTERM) == 0);
}

}  // namespace evictd::async::side_thread_test
