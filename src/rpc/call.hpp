#pragma once
#include <grpcpp/support/status.h>

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "rpc/connection.hpp"
#include "rpc/exchange.hpp"

// Calls over a connection as awaitables, with messages as bytes. On the reactor; nothing is thrown.
namespace evictd::rpc {

struct Answer {
  grpc::Status status;
  std::string message{};  ///< where the status is OK
};

/// A question and its answer. `deadline`: on the monotonic clock; the status is DEADLINE_EXCEEDED then, with what the
/// server said of it in words of its own. `largest_answer`: bytes; a larger one is RESOURCE_EXHAUSTED, and is not read.
/// Cancelling the coroutine cancels the call; the status says so.
[[nodiscard]] boost::asio::awaitable<Answer> call(std::shared_ptr<Connection> connection, std::string path,
                                                  std::string message, std::chrono::milliseconds deadline,
                                                  std::size_t largest_answer);

/// Begins a call that is answered by any number of messages, of `largest_message` bytes at most.
[[nodiscard]] std::shared_ptr<Exchange> open_stream(Connection& connection, const std::string& path,
                                                    const std::string& message, std::size_t largest_message);

/// The stream's next message; one call at a time. It may take for ever. Absent: the stream has ended, as the exchange
/// says, also because this coroutine was cancelled. While nobody asks, the server can send 1 MiB.
[[nodiscard]] boost::asio::awaitable<std::optional<std::string>> next_message(std::shared_ptr<Connection> connection,
                                                                              std::shared_ptr<Exchange> stream);

}  // namespace evictd::rpc
