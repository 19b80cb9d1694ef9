#pragma once
#include <grpcpp/support/status.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/this_coro.hpp>
#include <chrono>
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
  const auto begun = std::chrono::steady_clock::now();
  const auto name = question.method;
  const auto deadline = question.deadline;
  auto answer = co_await Channel::ask(channel, std::move(question));
  const auto took = std::chrono::steady_clock::now() - begun;  // the runtime, whoever parses
  // To wait for anything more would throw.
  const asio::cancellation_state caller = co_await asio::this_coro::cancellation_state;
  if (answer.status.ok() && caller.cancelled() != asio::cancellation_type::none)
    answer.status = grpc::Status::CANCELLED;
  const auto response = std::make_shared<Response>();
  if (answer.status.ok()) {
    const bool is_response = co_await Channel::parse(channel, std::move(answer.message), response);
    if (!is_response) answer.status = {grpc::StatusCode::INTERNAL, "the runtime answered with what is no message"};
    if (channel->is_closed()) answer.status = grpc::Status::CANCELLED;
  }
  channel->tell_observer(name, answer.status.error_code(), took);
  if (answer.status.ok()) co_return std::move(*response);
  co_return std::unexpected(channel->describe(name, answer.status, deadline));
}

}  // namespace evictd::cri
