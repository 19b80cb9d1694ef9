#include "api/eviction_service.hpp"

#include <utility>

#include "api/unary.hpp"

namespace evictd::api {
namespace {

grpc::Status to_status(const Refusal& refusal) {
  switch (refusal.code) {
    case RefusalCode::InvalidArgument: return {grpc::StatusCode::INVALID_ARGUMENT, refusal.message};
    case RefusalCode::FailedPrecondition: return {grpc::StatusCode::FAILED_PRECONDITION, refusal.message};
    case RefusalCode::Aborted: return {grpc::StatusCode::ABORTED, refusal.message};
    case RefusalCode::Internal: break;
  }
  return {grpc::StatusCode::INTERNAL, refusal.message};
}

grpc::ServerUnaryReactor* finish(grpc::CallbackServerContext& context, grpc::StatusCode code,
                                 const std::string& message) {
  auto* reactor = context.DefaultReactor();
  reactor->Finish({code, message});
  return reactor;
}

grpc::ServerUnaryReactor* unimplemented(grpc::CallbackServerContext& context) {
  return finish(context, grpc::StatusCode::UNIMPLEMENTED, "nobody answers this call here");
}

template <class T>
grpc::Status put(Answer<T> answer, T& reply) {
  if (!answer) return to_status(answer.error());
  reply = *std::move(answer);
  return grpc::Status::OK;
}

}  // namespace

EvictionService::EvictionService(EventLog& log, std::shared_ptr<EventStreams> streams, std::shared_ptr<OpenCalls> calls,
                                 Handlers handlers, Identify identify)
    : log_(log),
      streams_(std::move(streams)),
      calls_(std::move(calls)),
      handlers_(std::move(handlers)),
      identify_(std::move(identify)) {}

grpc::ServerWriteReactor<v1::Event>* EvictionService::StreamEvents(grpc::CallbackServerContext* context,
                                                                   const v1::StreamEventsRequest* request) {
  return streams_->open(*context, calls_, *request);
}

grpc::ServerUnaryReactor* EvictionService::GetNodeStatus(grpc::CallbackServerContext*, const v1::GetNodeStatusRequest*,
                                                         v1::NodeStatus* reply) {
  return answer_on(log_.get_executor(), calls_, [this, reply] {
    *reply = handlers_.status();
    reply->set_last_event_sequence(log_.last_sequence());
    return grpc::Status::OK;
  });
}

grpc::ServerUnaryReactor* EvictionService::Admit(grpc::CallbackServerContext* context, const v1::AdmitRequest* request,
                                                 v1::AdmitResponse* reply) {
  return ask(*context, read_asked_pods(*request, handlers_.admitter.memory_capacity), request->reserve(),
             [reply](Answers answers) { *reply = std::move(answers.front()); });
}

grpc::ServerUnaryReactor* EvictionService::AdmitBatch(grpc::CallbackServerContext* context,
                                                      const v1::AdmitBatchRequest* request,
                                                      v1::AdmitBatchResponse* reply) {
  return ask(*context, read_asked_pods(*request), request->reserve(), [reply](Answers answers) {
    for (auto& answer : answers) *reply->add_answers() = std::move(answer);
  });
}

grpc::ServerUnaryReactor* EvictionService::GetThresholds(grpc::CallbackServerContext* context,
                                                         const v1::GetThresholdsRequest*, v1::ThresholdSet* reply) {
  if (!handlers_.thresholds) return unimplemented(*context);
  return answer_on(log_.get_executor(), calls_, [this, reply] {
    *reply = handlers_.thresholds();
    return grpc::Status::OK;
  });
}

grpc::ServerUnaryReactor* EvictionService::UpdateThresholds(grpc::CallbackServerContext* context,
                                                            const v1::UpdateThresholdsRequest* request,
                                                            v1::UpdateThresholdsResponse* reply) {
  if (!handlers_.update_thresholds) return unimplemented(*context);
  return answer_later_on(log_.get_executor(), calls_, [this, request, reply](const auto& answer) {
    handlers_.update_thresholds(*request, [answer, reply](Answer<v1::UpdateThresholdsResponse> response) {
      answer([response = std::move(response), reply] { return put(response, *reply); });
    });
  });
}

grpc::ServerUnaryReactor* EvictionService::SuggestThresholds(grpc::CallbackServerContext* context,
                                                             const v1::SuggestThresholdsRequest*,
                                                             v1::SuggestThresholdsResponse* reply) {
  if (!handlers_.suggest_thresholds) return unimplemented(*context);
  return answer_on(log_.get_executor(), calls_, [this, reply] { return put(handlers_.suggest_thresholds(), *reply); });
}

grpc::ServerUnaryReactor* EvictionService::RankPods(grpc::CallbackServerContext* context,
                                                    const v1::RankPodsRequest* request, v1::RankPodsResponse* reply) {
  if (!handlers_.rank_pods) return unimplemented(*context);
  return answer_on(log_.get_executor(), calls_,
                   [this, request, reply] { return put(handlers_.rank_pods(*request), *reply); });
}

/// The texts were read on gRPC's thread: a large one must not hold up the reactor.
grpc::ServerUnaryReactor* EvictionService::ask(grpc::CallbackServerContext& context,
                                               Result<std::vector<AskedPod>> asked, bool reserve,
                                               std::function<void(Answers)> reply) {
  if (!handlers_.admitter.admit) return unimplemented(context);
  if (!asked) return finish(context, grpc::StatusCode::INVALID_ARGUMENT, asked.error().message);
  return answer_on(log_.get_executor(), calls_, [this, pods = *std::move(asked), reserve, reply = std::move(reply)] {
    auto answers = handlers_.admitter.admit(pods, reserve);
    if (!answers) return grpc::Status{grpc::StatusCode::FAILED_PRECONDITION, answers.error().message};
    reply(*std::move(answers));
    return grpc::Status::OK;
  });
}

}  // namespace evictd::api
