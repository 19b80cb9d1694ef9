#include "api/eviction_service.hpp"

#include <utility>

#include "api/unary.hpp"

namespace evictd::api {

EvictionService::EvictionService(EventLog& log, std::shared_ptr<EventStreams> streams, std::shared_ptr<OpenCalls> calls,
                                 std::function<v1::NodeStatus()> status, Admitter admitter)
    : log_(log),
      streams_(std::move(streams)),
      calls_(std::move(calls)),
      status_(std::move(status)),
      admitter_(std::move(admitter)) {}

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

grpc::ServerUnaryReactor* EvictionService::Admit(grpc::CallbackServerContext* context, const v1::AdmitRequest* request,
                                                 v1::AdmitResponse* reply) {
  return ask(*context, read_asked_pods(*request, admitter_.memory_capacity), request->reserve(),
             [reply](Answers answers) { *reply = std::move(answers.front()); });
}

grpc::ServerUnaryReactor* EvictionService::AdmitBatch(grpc::CallbackServerContext* context,
                                                      const v1::AdmitBatchRequest* request,
                                                      v1::AdmitBatchResponse* reply) {
  return ask(*context, read_asked_pods(*request), request->reserve(), [reply](Answers answers) {
    for (auto& answer : answers) *reply->add_answers() = std::move(answer);
  });
}

/// The texts were read on gRPC's thread: a large one must not hold up the reactor.
grpc::ServerUnaryReactor* EvictionService::ask(grpc::CallbackServerContext& context,
                                               Result<std::vector<AskedPod>> asked, bool reserve,
                                               std::function<void(Answers)> reply) {
  const auto finish = [&](grpc::StatusCode code, const std::string& message) {
    auto* reactor = context.DefaultReactor();
    reactor->Finish({code, message});
    return reactor;
  };
  if (!admitter_.admit) return finish(grpc::StatusCode::UNIMPLEMENTED, "nobody is asked for admission here");
  if (!asked) return finish(grpc::StatusCode::INVALID_ARGUMENT, asked.error().message);
  return answer_on(log_.get_executor(), calls_, [this, pods = *std::move(asked), reserve, reply = std::move(reply)] {
    auto answers = admitter_.admit(pods, reserve);
    if (!answers) return grpc::Status{grpc::StatusCode::FAILED_PRECONDITION, answers.error().message};
    reply(*std::move(answers));
    return grpc::Status::OK;
  });
}

}  // namespace evictd::api
