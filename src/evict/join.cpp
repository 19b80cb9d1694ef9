#include "evict/join.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>
#include <utility>

namespace asio = boost::asio;

namespace evictd::evict {
namespace {

struct Pending {
  asio::steady_timer done;  // never expires: cancelled when the last operation ended
  std::size_t running;
};

asio::awaitable<void> counted(asio::awaitable<void> operation, std::shared_ptr<Pending> pending) {
  co_await std::move(operation);
  if (--pending->running == 0) pending->done.cancel();
}

}  // namespace

asio::awaitable<void> join(std::vector<asio::awaitable<void>> operations) {
  const auto executor = co_await asio::this_coro::executor;
  const auto pending =
      std::make_shared<Pending>(asio::steady_timer{executor, asio::steady_timer::time_point::max()}, operations.size());
  for (auto& operation : operations) asio::co_spawn(executor, counted(std::move(operation), pending), asio::detached);
  while (pending->running > 0) co_await pending->done.async_wait(asio::as_tuple(asio::use_awaitable));
}

}  // namespace evictd::evict
