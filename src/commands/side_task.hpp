#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <string_view>

namespace evictd::commands {

/// Runs a task that goes on beside the agent for as long as evictd does. The node is guarded without it, too: an
/// exception ends the task alone, and the log says so. `what`, a literal, is what then stays undone.
void spawn_beside(const boost::asio::any_io_executor& reactor, boost::asio::awaitable<void> task,
                  std::string_view what);

}  // namespace evictd::commands
