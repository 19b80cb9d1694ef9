#pragma once
#include <functional>
#include <memory>

#include "api/open_calls.hpp"
#include "api/stream.hpp"
#include "evictd.grpc.pb.h"

namespace evictd::api {

/// evictd.v1.EvictionService on gRPC's threads: takes calls over to the reactor.
class EvictionService final : public v1::EvictionService::CallbackService {
 public:
  /// `status` is called on the reactor.
  EvictionService(EventLog& log, std::shared_ptr<EventStreams> streams, std::shared_ptr<OpenCalls> calls,
                  std::function<v1::NodeStatus()> status);

  grpc::ServerWriteReactor<v1::Event>* StreamEvents(grpc::CallbackServerContext* context,
                                                    const v1::StreamEventsRequest* request) override;
  grpc::ServerUnaryReactor* GetNodeStatus(grpc::CallbackServerContext* context, const v1::GetNodeStatusRequest* request,
                                          v1::NodeStatus* reply) override;

 private:
  EventLog& log_;
  std::shared_ptr<EventStreams> streams_;
  std::shared_ptr<OpenCalls> calls_;
  std::function<v1::NodeStatus()> status_;
};

}  // namespace evictd::api
