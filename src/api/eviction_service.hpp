#pragma once
#include <functional>
#include <memory>

#include "api/asked_pods.hpp"
#include "api/open_calls.hpp"
#include "api/stream.hpp"
#include "evictd.grpc.pb.h"

namespace evictd::api {

/// evictd.v1.EvictionService on gRPC's threads: takes calls over to the reactor.
class EvictionService final : public v1::EvictionService::CallbackService {
 public:
  /// `status` and the admitter are called on the reactor.
  EvictionService(EventLog& log, std::shared_ptr<EventStreams> streams, std::shared_ptr<OpenCalls> calls,
                  std::function<v1::NodeStatus()> status, Admitter admitter);

  grpc::ServerWriteReactor<v1::Event>* StreamEvents(grpc::CallbackServerContext* context,
                                                    const v1::StreamEventsRequest* request) override;
  grpc::ServerUnaryReactor* GetNodeStatus(grpc::CallbackServerContext* context, const v1::GetNodeStatusRequest* request,
                                          v1::NodeStatus* reply) override;
  grpc::ServerUnaryReactor* Admit(grpc::CallbackServerContext* context, const v1::AdmitRequest* request,
                                  v1::AdmitResponse* reply) override;
  grpc::ServerUnaryReactor* AdmitBatch(grpc::CallbackServerContext* context, const v1::AdmitBatchRequest* request,
                                       v1::AdmitBatchResponse* reply) override;

 private:
  using Answers = std::vector<v1::AdmitResponse>;
  grpc::ServerUnaryReactor* ask(grpc::CallbackServerContext& context, Result<std::vector<AskedPod>> asked, bool reserve,
                                std::function<void(Answers)> reply);

  EventLog& log_;
  std::shared_ptr<EventStreams> streams_;
  std::shared_ptr<OpenCalls> calls_;
  std::function<v1::NodeStatus()> status_;
  Admitter admitter_;
};

}  // namespace evictd::api
