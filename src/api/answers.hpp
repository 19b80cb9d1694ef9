#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <expected>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "api/caller.hpp"
#include "api/departure.hpp"
#include "api/handlers.hpp"
#include "api/refusals.hpp"
#include "core/error.hpp"
#include "events/event_log.hpp"
#include "events/turns.hpp"
#include "evictd.grpc.pb.h"
#include "rpc/server/unary_call.hpp"

namespace evictd::api {

/// A unary call on its way to an answer. It may end before that: the server shuts down.
template <class Request, class Response>
struct Asked {
  Caller caller;
  grpc::Status allowed;  ///< not OK only for a change, which is refused, and told of
  Request request;
  std::weak_ptr<rpc::UnaryCall<Request, Response>> call;
  std::shared_ptr<Departure> departure;  ///< of the client, before the answer

  /// Lets the client know that the answer will take its time.
  void confirm() const {
    if (const auto open = call.lock()) open->confirm();
  }
  void answer(const Response& response) const {
    if (const auto open = call.lock()) open->answer(response);
  }
  void refuse(const grpc::Status& status) const {
    if (const auto open = call.lock()) open->abort(status);
  }
};

/// How the unary calls of one way in are answered: each by one coroutine on the reactor, a step of one call at a time.
/// Whatever else waits on the reactor comes before the next step, and while there is no end of calls the reactor rests
/// as events::Turns does. All on the reactor.
class Answers {
 public:
  template <class Request, class Response>
  using AskedPtr = std::shared_ptr<const Asked<Request, Response>>;
  using Awaitable = boost::asio::awaitable<void>;

  /// `readers`: a thread for the texts of pods, which may take up to a second each; no other way in shares it, so that
  /// a flood of texts delays only those who come by the same way. Not used any more once stopped.
  Answers(events::EventLog& log, const Handlers& handlers, boost::asio::any_io_executor readers);

  [[nodiscard]] const Handlers& handlers() const { return handlers_; }
  [[nodiscard]] const boost::asio::any_io_executor& reactor() const { return reactor_; }

  /// The next step of a call waits for this. False: nothing is answered any more.
  [[nodiscard]] boost::asio::awaitable<bool> turn() { return turns_->turn(); }
  /// Calls that wait for their turn end at once, within this.
  void stop() { turns_->stop(); }

  // How each is answered, within a turn, and over some more where it takes long.

  [[nodiscard]] v1::NodeStatus status() const;
  Awaitable admit(AskedPtr<v1::AdmitRequest, v1::AdmitResponse> asked);
  Awaitable admit_batch(AskedPtr<v1::AdmitBatchRequest, v1::AdmitBatchResponse> asked);
  Awaitable update_thresholds(AskedPtr<v1::UpdateThresholdsRequest, v1::UpdateThresholdsResponse> asked);

 private:
  using AdmissionRequests = std::vector<AdmissionRequest>;
  using Decided = std::expected<std::vector<v1::AdmitResponse>, grpc::Status>;
  struct Question;

  /// Nothing where all was stopped meanwhile.
  boost::asio::awaitable<std::optional<Decided>> decide(std::shared_ptr<const Question> question);
  boost::asio::awaitable<std::optional<Decided>> decide_all(std::shared_ptr<const Question> question,
                                                            AdmissionRequestsPtr pods);
  static void ring_when_room(const Question& question, AdmissionTask& task,
                             const std::shared_ptr<events::Turns::Bell>& bell);
  boost::asio::awaitable<Answer<v1::UpdateThresholdsResponse>> ask_for(const v1::UpdateThresholdsRequest& request);

  void tell(const Caller& caller, const grpc::Status& outcome, v1::Audit audit);

  events::EventLog& log_;
  Handlers handlers_;
  boost::asio::any_io_executor reactor_;
  boost::asio::any_io_executor readers_;
  std::shared_ptr<events::Turns> turns_;
  Refusals refusals_;
};

/// What a refusal is for gRPC.
[[nodiscard]] grpc::Status to_status(const Refusal& refusal);

}  // namespace evictd::api
