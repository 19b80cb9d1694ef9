#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <string>
#include <utility>

namespace evictd::web {

/// Makes a text on another executor, and goes on here with it. What `make` holds is touched by that thread alone until
/// then.
template <class Make>
boost::asio::awaitable<std::string> beside(boost::asio::any_io_executor workers, Make make) {
  auto work = [](Make given) -> boost::asio::awaitable<std::string> { co_return given(); };
  co_return co_await boost::asio::co_spawn(workers, work(std::move(make)), boost::asio::use_awaitable);
}

}  // namespace evictd::web
