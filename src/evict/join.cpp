#include "evict/join.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstddef>
#include <exception>
#include <memory>
#include <utility>

namespace asio = boost::asio;

namespace evictd::evict {
namespace {

struct Pending {
  asio::steady_timer done;  // never expires: cancelled when the last operation ended
  std::size_t running;
  std::exception_ptr thrown{};  // by the first that threw
};

}  // namespace

asio::awaitable<void> join(std::vector<asio::awaitable<void>> operations) {
  const auto executor = co_await asio::this_coro::executor;
  const auto pending =
      std::make_shared<Pending>(asio::steady_timer{executor, asio::steady_timer::time_point::max()}, operations.size());
  for (auto& operation : operations)
    asio::co_spawn(executor, std::move(operation), [pending](const std::exception_ptr& thrown) {
      if (thrown && !pending->thrown) pending->thrown = thrown;
      if (--pending->running == 0) pending->done.cancel();
    });
  while (pending->running > 0) co_await pending->done.async_wait(asio::as_tuple(asio::use_awaitable));
  if (pending->thrown) std::rethrow_exception(pending->thrown);
}

}  // namespace evictd::evict
