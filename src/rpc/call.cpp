#include "rpc/call.hpp"

#include <boost/asio/this_coro.hpp>
#include <utility>

#include "async/sleep.hpp"

namespace asio = boost::asio;

namespace evictd::rpc {
namespace {

/// The server has the same deadline, and ends what it does in words of its own (containerd: an unknown error, "context
/// deadline exceeded"): on a busy node chance has it whose end is heard first.
grpc::Status at_deadline(grpc::Status status) {
  const auto code = status.error_code();
  if (code != grpc::StatusCode::CANCELLED && code != grpc::StatusCode::UNKNOWN) return status;
  return {grpc::StatusCode::DEADLINE_EXCEEDED, code == grpc::StatusCode::UNKNOWN ? status.error_message() : ""};
}

Answer answer_of(Exchange& exchange) {
  auto status = *std::move(exchange.ended);
  if (std::chrono::steady_clock::now() >= exchange.news.expiry()) status = at_deadline(std::move(status));
  auto& messages = exchange.reader.messages;
  if (status.ok() && messages.empty())
    status = {grpc::StatusCode::INTERNAL, "the server ended the call without an answer"};
  if (!status.ok()) return {.status = std::move(status)};
  return {.status = std::move(status), .message = std::move(messages.front())};
}

}  // namespace

asio::awaitable<Answer> call(std::shared_ptr<Connection> connection, std::string path, std::string message,
                             std::chrono::milliseconds deadline, std::size_t largest_answer) {
  const auto exchange = std::make_shared<Exchange>(connection->reactor(), Exchange::Kind::Unary, largest_answer);
  auto& news = exchange->news;
  news.expires_after(deadline);
  connection->send(path, message, deadline, exchange);
  if (!exchange->ended) co_await async::wait(news);
  // It may have come together with the deadline.
  if (!exchange->ended) connection->read();
  if (!exchange->ended) connection->cancel(exchange);
  co_return answer_of(*exchange);
}

std::shared_ptr<Exchange> open_stream(Connection& connection, const std::string& path, const std::string& message,
                                      std::size_t largest_message) {
  auto exchange = std::make_shared<Exchange>(connection.reactor(), Exchange::Kind::Stream, largest_message);
  exchange->news.expires_at(asio::steady_timer::time_point::max());
  connection.send(path, message, std::chrono::milliseconds{0}, exchange);
  return exchange;
}

asio::awaitable<std::optional<std::string>> next_message(std::shared_ptr<Connection> connection,
                                                         std::shared_ptr<Exchange> stream) {
  auto& messages = stream->reader.messages;
  while (messages.empty() && !stream->ended) {
    co_await async::wait(stream->news);
    if ((co_await asio::this_coro::cancellation_state).cancelled() != asio::cancellation_type::none)
      connection->cancel(stream);
  }
  if (messages.empty()) co_return std::nullopt;
  auto message = std::move(messages.front());
  messages.pop_front();
  if (messages.empty()) connection->make_room(stream);
  co_return message;
}

}  // namespace evictd::rpc
