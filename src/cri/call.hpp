#pragma once
#include <grpcpp/support/status.h>

#include <boost/asio/awaitable.hpp>
#include <expected>
#include <memory>
#include <string>
#include <utility>

#include "cri/channel.hpp"
#include "cri/reply.hpp"

// A call over the channel. For the sources of this folder.
namespace evictd::cri {

/// On the reactor. Nothing is thrown.
template <class Response>
asio::awaitable<Reply<Response>> call(std::shared_ptr<Channel> channel, Question question) {
  const auto name = question.method;
  const auto deadline = question.deadline;
  auto answer = co_await Channel::ask(channel, std::move(question));
  if (answer.status.ok()) {
    const auto response = std::make_shared<Response>();
    const bool is_response = co_await Channel::parse(channel, std::move(answer.message), response);
    if (is_response && !channel->is_closed()) co_return std::move(*response);
    answer.status = channel->is_closed()
                        ? grpc::Status::CANCELLED
                        : grpc::Status{grpc::StatusCode::INTERNAL, "the runtime answered with what is no message"};
  }
  co_return std::unexpected(channel->describe(name, answer.status, deadline));
}

}  // namespace evictd::cri
