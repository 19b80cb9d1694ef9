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

evict::HookAnswer answer_of_socket(const std::string& name, std::string outcome, core::Instant asked) {
  return {.hook = core::printable(name), .outcome = std::move(outcome), .took = os::now() - asked};
}

asio::awaitable<evict::HookAnswer> ask_socket(std::string name, os::FileDescriptor connection, std::string cgroup,
                                              core::Instant asked, core::Instant until) {
  auto outcome = co_await notify_hook(std::move(connection), std::move(cgroup), until);
  co_return answer_of_socket(name, std::move(outcome), asked);
}

}  // namespace

asio::awaitable<std::vector<evict::HookAnswer>> SocketHooks::ask(evict::KillIntent intent) {
  const auto asked = os::now();
  const auto names = directory_.names();
  std::vector<evict::HookAnswer> answers;
  if (names.empty()) co_return answers;
  auto connections = co_await directory_.connect(names, intent.until);
  if (!connections) {
    for (const auto& name : names) answers.push_back(answer_of_socket(name, evict::outcome_late, asked));
    co_return answers;
  }
  std::vector<asio::awaitable<evict::HookAnswer>> under_way;
  for (std::size_t i = 0; i < names.size(); ++i) {
    auto& connection = (*connections)[i];
    if (connection)
      under_way.push_back(ask_socket(names[i], *std::move(connection), intent.cgroup, asked, intent.until));
    else
      answers.push_back(answer_of_socket(names[i], connection.error().message, asked));
  }
  auto told = co_await async::wait_all(std::move(under_way));
  for (auto& answer : told) answers.push_back(std::move(answer));
  co_return answers;
}

}  // namespace evictd::prekill
