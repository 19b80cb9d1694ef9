#pragma once
#include <grpcpp/support/status.h>

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <expected>
#include <memory>
#include <string>
#include <utility>

#include "cri/channel.hpp"
#include "cri/reply.hpp"
#include "cri/stream.hpp"
#include "rpc/call.hpp"
#include "rpc/connection.hpp"
#include "rpc/exchange.hpp"

// A server stream over the channel. For the sources of this folder.
namespace evictd::cri {

/// Nothing happens before the first next(). It shares the channel, which may be closed meanwhile.
template <class Message>
class OpenStream final : public Stream<Message> {
 public:
  OpenStream(std::shared_ptr<Channel> channel, Question question)
      : channel_(std::move(channel)), call_(std::make_shared<Call>(std::move(question))) {}
  ~OpenStream() override { call_->end(); }

  asio::awaitable<Reply<Message>> next() override { return next(channel_, call_); }
  void cancel() override { call_->end(); }

 private:
  struct Call {
    explicit Call(Question asked) : question(std::move(asked)) {}

    [[nodiscard]] grpc::Status begin(Channel& channel) {
      auto connected = channel.connect();
      if (!connected) return connected.error();
      connection = *std::move(connected);
      exchange = rpc::open_stream(*connection, question.path(), question.message, question.largest_answer);
      return grpc::Status::OK;
    }
    void end() {
      is_over = true;
      if (exchange) connection->cancel(exchange);
    }

    Question question;
    std::shared_ptr<rpc::Connection> connection{};  ///< null before the first next()
    std::shared_ptr<rpc::Exchange> exchange{};
    bool is_over = false;
  };

  /// Holds all that it needs: the stream may go meanwhile.
  static asio::awaitable<Reply<Message>> next(std::shared_ptr<Channel> channel, std::shared_ptr<Call> call) {
    auto status = grpc::Status::CANCELLED;
    if (!channel->is_closed() && !call->is_over) status = call->exchange ? grpc::Status::OK : call->begin(*channel);
    if (status.ok()) {
      const auto bytes = co_await rpc::next_message(call->connection, call->exchange);
      Message message;
      if (bytes && message.ParseFromString(*bytes)) co_return message;
      status = how_it_ended(*call, bytes.has_value());
    }
    call->end();
    co_return std::unexpected(channel->describe(call->question.method, status, std::chrono::milliseconds{0}));
  }

  static grpc::Status how_it_ended(const Call& call, bool was_no_message) {
    if (was_no_message) return {grpc::StatusCode::INTERNAL, "the runtime sent what is no message"};
    // To a caller it is the same whether the runtime goes in order or not.
    if (call.exchange->ended->ok()) return {grpc::StatusCode::UNAVAILABLE, "the runtime ended the stream"};
    return *call.exchange->ended;
  }

  std::shared_ptr<Channel> channel_;
  std::shared_ptr<Call> call_;
};

}  // namespace evictd::cri
