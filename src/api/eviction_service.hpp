#pragma once
#include <functional>
#include <memory>

#include "api/caller.hpp"
#include "api/handlers.hpp"
#include "api/open_calls.hpp"
#include "api/stream.hpp"
#include "evictd.grpc.pb.h"

namespace evictd::api {

/// evictd.v1.EvictionService on gRPC's threads: takes calls over to the reactor.
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
  using Answers = std::vector<v1::AdmitResponse>;
  grpc::ServerUnaryReactor* ask(grpc::CallbackServerContext& context, Result<std::vector<AskedPod>> asked, bool reserve,
                                std::function<void(Answers)> reply);

  EventLog& log_;
  std::shared_ptr<EventStreams> streams_;
  std::shared_ptr<OpenCalls> calls_;
  Handlers handlers_;
  Identify identify_;
};

}  // namespace evictd::api
