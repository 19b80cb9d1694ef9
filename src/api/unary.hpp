#pragma once
#include <grpcpp/support/server_callback.h>

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/call_budget.hpp"
#include "api/open_calls.hpp"
#include "events/turns.hpp"

namespace evictd::api {

/// Does a part of a call's work on the reactor, about a millisecond at most. How the call ends, once the reply is
/// filled; nothing while there is more to do, which is done in another turn.
using Step = std::function<std::optional<grpc::Status>()>;

/// Fills the reply and says how the call ends.
using Fill = std::function<grpc::Status()>;

class UnaryCall;

/// Answers the unary calls of one way in on the reactor, a step of one call at a time: whatever else waits on the
/// reactor comes before the next step, and while there is no end of calls the reactor rests as Turns does. How many
/// there are at a time is bounded.
///
/// Made on the reactor, else called on gRPC's threads; what is returned to those belongs to gRPC. Where the
/// server shuts down first, a call ends with UNAVAILABLE, and what would answer it does not run (any more).
class UnaryCalls {
 public:
  UnaryCalls(boost::asio::any_io_executor reactor, std::shared_ptr<OpenCalls> open, CallLimits limits = {});

  /// Room for a call, to be held until it is over: `answer` sees to it. RESOURCE_EXHAUSTED: there are too many.
  [[nodiscard]] std::expected<CallBudget::Place, grpc::Status> admit(const std::string& caller, std::size_t weight = 1);

  [[nodiscard]] grpc::ServerUnaryReactor* answer(CallBudget::Place place, Step step);

  /// The same where the answer takes its time: `begin` runs on the reactor once; what it gives to `answer`, there,
  /// once, is run unless the call has ended meanwhile.
  [[nodiscard]] grpc::ServerUnaryReactor* answer_later(
      CallBudget::Place place, std::function<void(std::function<void(const Fill&)> answer)> begin);

 private:
  grpc::ServerUnaryReactor* begin(CallBudget::Place place, std::function<bool(UnaryCall&)> take);

  boost::asio::any_io_executor reactor_;
  std::shared_ptr<OpenCalls> open_;
  std::shared_ptr<CallBudget> budget_;
  std::shared_ptr<events::Turns> turns_;
};

}  // namespace evictd::api
