#pragma once
#include <grpcpp/support/status.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "rpc/call_status.hpp"
#include "rpc/message_reader.hpp"

namespace evictd::rpc {

/// What has come of one call so far: the connection writes it, and whoever made the call waits for it. On the reactor.
struct Exchange {
  /// How many messages are awaited, and so when the server may send more.
  enum class Kind : std::uint8_t {
    Unary,   ///< one, when the call ends
    Stream,  ///< as many as the caller takes
  };

  Exchange(const boost::asio::any_io_executor& reactor, Kind awaited, std::size_t largest_message)
      : kind(awaited), reader(largest_message), news(reactor) {}

  /// Whoever waits for news goes on in a later turn: nothing of the caller's runs within the connection.
  void end(grpc::Status status) {
    if (ended) return;
    ended = std::move(status);
    news.cancel();
  }

  Kind kind;
  CallStatus status{};
  MessageReader reader;
  std::size_t unread = 0;  ///< bytes of a stream that the server has not been given room for again
  std::optional<grpc::Status> ended{};
  /// Cancelled when there is a message of a stream, or the end.
  boost::asio::steady_timer news;
};

}  // namespace evictd::rpc
