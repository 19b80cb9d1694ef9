#include "api/eviction_service.hpp"

#include <utility>

#include "api/unary.hpp"

namespace evictd::api {

EvictionService::EvictionService(EventLog& log, std::shared_ptr<EventStreams> streams, std::shared_ptr<OpenCalls> calls,
                                 std::function<v1::NodeStatus()> status)
    : log_(log), streams_(std::move(streams)), calls_(std::move(calls)), status_(std::move(status)) {}

grpc::ServerWriteReactor<v1::Event>* EvictionService::StreamEvents(grpc::CallbackServerContext* context,
                                                                   const v1::StreamEventsRequest* request) {
  return streams_->open(*context, calls_, *request);
}

grpc::ServerUnaryReactor* EvictionService::GetNodeStatus(grpc::CallbackServerContext*, const v1::GetNodeStatusRequest*,
                                                         v1::NodeStatus* reply) {
  return answer_on(log_.get_executor(), calls_, [this, reply] {
    *reply = status_();
    reply->set_last_event_sequence(log_.last_sequence());
    return grpc::Status::OK;
  });
}

}  // namespace evictd::api
