#pragma once
#include <grpcpp/support/server_callback.h>

#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <memory>

#include "api/open_calls.hpp"

namespace evictd::api {

/// Answers a unary call on the reactor: `answer` runs there once, fills the reply and says how the call ends. Where the
/// server shuts down first, the call ends with UNAVAILABLE and `answer` never runs. Called on gRPC's threads; what it
/// returns belongs to gRPC.
[[nodiscard]] grpc::ServerUnaryReactor* answer_on(const boost::asio::any_io_executor& reactor,
                                                  const std::shared_ptr<OpenCalls>& calls,
                                                  std::function<grpc::Status()> answer);

/// Fills the reply and says how the call ends.
using Fill = std::function<grpc::Status()>;

/// The same where the answer takes its time: `begin` runs on the reactor once; what it gives to `answer`, there, once,
/// is run unless the call has ended meanwhile.
[[nodiscard]] grpc::ServerUnaryReactor* answer_later_on(
    const boost::asio::any_io_executor& reactor, const std::shared_ptr<OpenCalls>& calls,
    std::function<void(std::function<void(const Fill&)> answer)> begin);

}  // namespace evictd::api
