#include "commands/side_task.hpp"

#include <boost/asio/co_spawn.hpp>
#include <exception>
#include <utility>

#include "host/log.hpp"

namespace asio = boost::asio;

namespace evictd::commands {

void spawn_beside(const asio::any_io_executor& reactor, asio::awaitable<void> task, std::string_view what) {
  asio::co_spawn(reactor, std::move(task), [what](std::exception_ptr thrown) {
    if (!thrown) return;
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& error) {
      host::log_error("{} until evictd restarts: {}", what, error.what());
    }
  });
}

}  // namespace evictd::commands
