#include "app/all_hooks.hpp"

#include <utility>

#include "async/wait_all.hpp"

namespace asio = boost::asio;

namespace evictd::app {

AllHooks::AllHooks(const asio::any_io_executor& reactor, const std::string& directory) : agents_{reactor} {
  if (!directory.empty()) sockets_.emplace(reactor, prekill::SocketDirectoryOptions{.path = directory});
}

bool AllHooks::has_any() const { return agents_.has_any() || (sockets_ && sockets_->has_any()); }

asio::awaitable<void> AllHooks::ask(evict::KillIntent intent) {
  std::vector<asio::awaitable<void>> under_way;
  if (agents_.has_any()) under_way.push_back(agents_.ask(intent));
  if (sockets_ && sockets_->has_any()) under_way.push_back(sockets_->ask(intent));
  co_await async::wait_all(std::move(under_way));
}

}  // namespace evictd::app
