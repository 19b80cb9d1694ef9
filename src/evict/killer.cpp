#include "evict/killer.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

namespace asio = boost::asio;

namespace evictd::evict {

Killer::Killer(asio::any_io_executor reactor, Parts parts) : reactor_{std::move(reactor)}, parts_{std::move(parts)} {}

Kill Killer::kill(std::span<const Target> targets, std::size_t most) const {
  auto kill = kill_targets(parts_.hierarchy, parts_.pods_cgroup, targets, parts_.is_protected, most);
  parts_.reaper.reap(std::exchange(kill.held, {}));
  return kill;
}

Kill Killer::kill_now(std::span<const Target> targets) { return kill(targets, most_in_a_turn); }

asio::awaitable<Kill> Killer::kill_beside(std::vector<Target> targets) {
  struct Waiting {
    asio::steady_timer done;  // never expires
    std::optional<Kill> kill{};
  };
  const auto waiting = std::make_shared<Waiting>(asio::steady_timer{reactor_, asio::steady_timer::time_point::max()});
  asio::post(thread_, [this, waiting, targets = std::move(targets)] {
    auto kill = this->kill(targets, std::numeric_limits<std::size_t>::max());
    asio::post(reactor_, [waiting, kill = std::move(kill)]() mutable {
      waiting->kill = std::move(kill);
      waiting->done.cancel();
    });
  });
  while (!waiting->kill) co_await waiting->done.async_wait(asio::as_tuple(asio::use_awaitable));
  co_return std::move(*waiting->kill);
}

}  // namespace evictd::evict
