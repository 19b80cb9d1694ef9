#include "app/all_hooks.hpp"

#include <utility>

#include "async/wait_all.hpp"

namespace asio = boost::asio;

namespace evictd::app {

AllHooks::AllHooks(const asio::any_io_executor& reactor, const std::string& directory) : agents_{reactor} {
  if (!directory.empty()) sockets_.emplace(reactor, prekill::SocketDirectoryOptions{.path = directory});
}

bool AllHooks::has_any() const { return agents_.has_any() || (sockets_ && sockets_->has_any()); }

asio::awaitable<std::vector<evict::HookAnswer>> AllHooks::ask(evict::KillIntent intent) {
  std::vector<asio::awaitable<std::vector<evict::HookAnswer>>> under_way;
  if (agents_.has_any()) under_way.push_back(agents_.ask(intent));
  if (sockets_ && sockets_->has_any()) under_way.push_back(sockets_->ask(intent));
  auto parts = co_await async::wait_all(std::move(under_way));
  std::vector<evict::HookAnswer> answers;
  for (auto& part : parts)
    for (auto& answer : part) answers.push_back(std::move(answer));
  co_return answers;
}

}  // namespace evictd::app
