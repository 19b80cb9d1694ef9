#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "async/awaited.hpp"
#include "core/duration.hpp"

// Work for other threads, whose result is waited for here.

namespace evictd::async {

/// Runs `work` on another executor and goes on with its result on this one, whatever waits there for its turn. What it
/// throws is thrown here. What `work` holds is touched by that thread alone until then.
template <class Work>
boost::asio::awaitable<std::invoke_result_t<Work>> offload(boost::asio::any_io_executor workers, Work work) {
  namespace asio = boost::asio;
  using Value = std::invoke_result_t<Work>;
  using Token = const asio::use_awaitable_t<>;
  // A coroutine on the other executor would end by a post of its own there: behind all that was queued meanwhile.
  auto initiate = [](auto handler, const asio::any_io_executor& reactor, const asio::any_io_executor& executor,
                     Work given) {
    auto run = [handler = std::move(handler), guard = asio::make_work_guard(reactor),
                given = std::move(given)]() mutable {
      std::exception_ptr thrown;
      std::optional<Value> value;
      try {
        value.emplace(given());
      } catch (...) {
        thrown = std::current_exception();
      }
      asio::post(guard.get_executor(), [handler = std::move(handler), thrown, value = std::move(value)]() mutable {
        std::move(handler)(thrown, std::move(value));
      });
    };
    asio::post(executor, std::move(run));
  };
  const auto reactor = co_await asio::this_coro::executor;
  auto value = co_await asio::async_initiate<Token, void(std::exception_ptr, std::optional<Value>)>(
      std::move(initiate), asio::use_awaitable, reactor, workers, std::move(work));
  co_return *std::move(value);
}

/// The same until a deadline; nothing if the result does not come in time. The other executor's threads must have ended
/// before the reactor is destroyed.
template <class Work>
boost::asio::awaitable<std::optional<std::invoke_result_t<Work>>> offload(boost::asio::any_io_executor workers,
                                                                          Work work, core::Instant end) {
  namespace asio = boost::asio;
  using Value = std::invoke_result_t<Work>;
  const auto reactor = co_await asio::this_coro::executor;
  const auto awaited = std::make_shared<Awaited<Value>>(reactor, end);
  asio::post(workers, [awaited, reactor, work = std::move(work)]() mutable {
    auto value = work();
    asio::post(reactor, [awaited = std::move(awaited), value = std::move(value)]() mutable {
      awaited->deliver(std::move(value));
    });
  });
  co_return co_await Awaited<Value>::wait(awaited);
}

/// As offload() with a deadline, for a caller that is no coroutine and may be destroyed meanwhile.
///
/// `done` is called on the reactor, once: with the result, or with nothing once the deadline has passed; then the late
/// result goes to `late`, if there is one. Neither is called when `owner`, which is looked at on the reactor, has gone.
template <class Work, class Done, class Late>
void offload(const boost::asio::any_io_executor& reactor, const boost::asio::any_io_executor& workers,
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
