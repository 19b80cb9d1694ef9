#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace evictd::async {

/// For long work on a reactor: goes on there once a pass has run that the kernel woke by now.
///
/// That takes three posts. Asio puts what its epoll finds behind what was posted (Boost 1.81: scheduler.ipp),
/// and the source that is found so wakes the pass (wake::Wakes), which comes behind what was posted next.
inline boost::asio::awaitable<void> next_turn(boost::asio::any_io_executor reactor) {
  for (int post = 0; post < 3; ++post) co_await boost::asio::post(reactor, boost::asio::use_awaitable);
}

}  // namespace evictd::async
