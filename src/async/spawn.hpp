#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <functional>
#include <string>
#include <string_view>

namespace evictd::async {

/// Runs the operation on the executor until it ends by itself. What it throws comes out of the executor's `run()` as a
/// std::runtime_error "WHAT: REASON", which ends evictd with one line and exit code 1: systemd starts it again, and it
/// goes on where it was. Otherwise the operation would have ended for ever, and nothing would show it.
///
/// `what` names the operation for that line, such as "listing the pods"; it is a literal, or lives as long.
void spawn(const boost::asio::any_io_executor& executor, boost::asio::awaitable<void> operation, std::string_view what);

/// As spawn(), for what the node is guarded without: what a remote peer asked for, and could make fail again and
/// again. What the operation throws ends it alone; `on_failure` is told the reason, on the executor, and throws
/// nothing.
void spawn_contained(const boost::asio::any_io_executor& executor, boost::asio::awaitable<void> operation,
                     std::move_only_function<void(const std::string& reason)> on_failure);

}  // namespace evictd::async
