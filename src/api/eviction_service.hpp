#pragma once
#include <expected>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "api/caller.hpp"
#include "api/handlers.hpp"
#include "api/open_calls.hpp"
#include "api/stream.hpp"
#include "core/error.hpp"
#include "evictd.grpc.pb.h"

namespace evictd::api {

/// evictd.v1.EvictionService on gRPC's threads: takes calls over to the reactor, those that the caller may make.
///
/// One for each way in; they share all but `identify`. Whoever asks for a change is told of by Handlers::audit, once,
/// with what came of it; only where the server shuts down before the reactor has the call, nothing came of it.
class EvictionService final : public v1::EvictionService::CallbackService {
 public:
  EvictionService(EventLog& log, std::shared_ptr<EventStreams> streams, std::shared_ptr<OpenCalls> calls,
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

  /// A question about pods: `pods` reads them, if the caller may ask; `reply` is given the answers where there are any.
  struct Question {
    std::string_view call;
    std::function<Result<AskedPods>()> pods;
    bool reserve = false;
    std::function<void(Answers)> reply;
  };
  grpc::ServerUnaryReactor* ask(grpc::CallbackServerContext& context, const Question& question);
  [[nodiscard]] std::expected<Answers, grpc::Status> decide(const Result<AskedPods>& pods, bool reserve) const;

  /// A call that changes nothing: `answer` fills the reply on the reactor, if the caller may look and `handled` says
  /// that there is somebody to answer.
  grpc::ServerUnaryReactor* look(grpc::CallbackServerContext& context, std::string_view call, bool handled,
                                 std::function<grpc::Status()> answer);
  [[nodiscard]] grpc::Status permitted(const grpc::CallbackServerContext& context, std::string_view call) const;

  EventLog& log_;
  std::shared_ptr<EventStreams> streams_;
  std::shared_ptr<OpenCalls> calls_;
  Handlers handlers_;
  Identify identify_;
};

}  // namespace evictd::api
