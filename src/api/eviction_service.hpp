#pragma once
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "api/caller.hpp"
#include "api/handlers.hpp"
#include "api/open_calls.hpp"
#include "api/stream.hpp"
#include "api/unary.hpp"
#include "core/error.hpp"
#include "evictd.grpc.pb.h"

namespace evictd::api {

/// evictd.v1.EvictionService on gRPC's threads: takes calls over to the reactor, those that the caller may make.
///
/// One for each way in; they share all but `identify` and the calls in flight: a flood on one way in leaves room on the
/// others. Whoever asks for a change is told of by Handlers::audit, once, with what came of it; only where there are
/// too many calls already, or the server shuts down before the reactor has the call, nothing came of it.
class EvictionService final : public v1::EvictionService::CallbackService {
 public:
  EvictionService(events::EventLog& log, std::shared_ptr<EventStreams> streams, std::shared_ptr<OpenCalls> calls,
                  Handlers handlers, Identify identify);

  grpc::ServerWriteReactor<v1::Event>* StreamEvents(grpc::CallbackServerContext* context,
                                                    const v1::StreamEventsRequest* request) override;
  grpc::ServerUnaryReactor* GetNodeStatus(grpc::CallbackServerContext* context, const v1::GetNodeStatusRequest* request,
                                          v1::NodeStatus* reply) override;
  grpc::ServerUnaryReactor* Admit(grpc::CallbackServerContext* context, const v1::AdmitRequest* request,
                                  v1::AdmitResponse* reply) override;
  grpc::ServerUnaryReactor* AdmitBatch(grpc::CallbackServerContext* context, const v1::AdmitBatchRequest* request,
                                       v1::AdmitBatchResponse* reply) override;
  grpc::ServerUnaryReactor* GetThresholds(grpc::CallbackServerContext* context, const v1::GetThresholdsRequest* request,
                                          v1::ThresholdSet* reply) override;
  grpc::ServerUnaryReactor* UpdateThresholds(grpc::CallbackServerContext* context,
                                             const v1::UpdateThresholdsRequest* request,
                                             v1::UpdateThresholdsResponse* reply) override;
  grpc::ServerUnaryReactor* SuggestThresholds(grpc::CallbackServerContext* context,
                                              const v1::SuggestThresholdsRequest* request,
                                              v1::SuggestThresholdsResponse* reply) override;
  grpc::ServerUnaryReactor* RankPods(grpc::CallbackServerContext* context, const v1::RankPodsRequest* request,
                                     v1::RankPodsResponse* reply) override;

 private:
  using AskedPods = std::vector<AskedPod>;
  using Answers = std::vector<v1::AdmitResponse>;
  using Decided = std::expected<Answers, grpc::Status>;

  /// A question about pods: `pods` reads them, if the caller may ask; `reply` is given the answers where there are any.
  struct Question {
    std::string_view call;
    std::function<Result<AskedPods>()> pods;
    std::size_t weight = 1;
    bool reserve = false;
    std::function<void(Answers)> reply;
  };
  /// One that is being answered, over several turns.
  struct Deciding;
  grpc::ServerUnaryReactor* ask(grpc::CallbackServerContext& context, const Question& question);
  /// The answers once all are there, and why there are none; nothing while there is more to decide.
  [[nodiscard]] std::optional<Decided> decide_some(Deciding& deciding) const;

  /// A call that changes nothing: `answer` fills the reply on the reactor, if the caller may look and `handled` says
  /// that there is somebody to answer.
  grpc::ServerUnaryReactor* look(grpc::CallbackServerContext& context, std::string_view call, bool handled,
                                 Fill answer);
  [[nodiscard]] grpc::Status permitted(const grpc::CallbackServerContext& context, std::string_view call) const;

  events::EventLog& log_;
  std::shared_ptr<EventStreams> streams_;
  std::shared_ptr<OpenCalls> calls_;
  UnaryCalls unary_;
  Handlers handlers_;
  Identify identify_;
};

}  // namespace evictd::api
