#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace evictd::async {

/// For long work on a reactor: goes on there once everything has run that was ready by now, what the kernel tells of
/// included. After a single post() that would come second: Asio looks at its epoll, and puts what it finds behind what
/// was posted.
inline boost::asio::awaitable<void> next_turn(boost::asio::any_io_executor reactor) {
  co_await boost::asio::post(reactor, boost::asio::use_awaitable);
  co_await boost::asio::post(reactor, boost::asio::use_awaitable);
}

}  // namespace evictd::async
