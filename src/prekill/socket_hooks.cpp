#include "prekill/socket_hooks.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "async/wait_all.hpp"
#include "core/printable.hpp"
#include "os/now.hpp"
#include "prekill/varlink_call.hpp"

namespace asio = boost::asio;

namespace evictd::prekill {
namespace {

/// The answers of the sockets, which are the last ones from `first` on.
struct SocketAnswers {
  std::shared_ptr<std::vector<evict::HookAnswer>> all;
  std::size_t first;
  core::Instant asked = os::now();

  void settle(std::size_t socket, std::string outcome) const {
    auto& answer = (*all)[first + socket];
    answer.outcome = std::move(outcome);
    answer.took = os::now() - asked;
  }
};

asio::awaitable<void> ask_socket(SocketAnswers answers, std::size_t socket, os::FileDescriptor connection,
                                 std::string cgroup, core::Instant until) {
  auto outcome = co_await notify_hook(std::move(connection), std::move(cgroup), until);
  answers.settle(socket, std::move(outcome));
}

}  // namespace

asio::awaitable<void> SocketHooks::ask(evict::KillIntent intent) {
  const SocketAnswers answers{intent.answers, intent.answers->size()};
  const auto names = directory_.names();
  for (const auto& name : names)
    intent.answers->push_back({.hook = core::printable(name), .outcome = evict::outcome_late});
  if (names.empty()) co_return;
  auto connections = co_await directory_.connect(names, intent.until);
  if (!connections) co_return;
  std::vector<asio::awaitable<void>> under_way;
  for (std::size_t i = 0; i < names.size(); ++i) {
    auto& connection = (*connections)[i];
    if (connection)
      under_way.push_back(ask_socket(answers, i, *std::move(connection), intent.cgroup, intent.until));
    else
      answers.settle(i, connection.error().message);
  }
  co_await async::wait_all(std::move(under_way));
}

}  // namespace evictd::prekill
