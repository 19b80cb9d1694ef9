#include "api/eviction_service.hpp"

#include <evictd.pb.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "api/audit.hpp"
#include "api/permission.hpp"
#include "api/unary.hpp"
#include "core/error.hpp"

namespace evictd::api {
namespace {

grpc::Status to_status(const Refusal& refusal) {
  switch (refusal.code) {
    case RefusalCode::InvalidArgument: return {grpc::StatusCode::INVALID_ARGUMENT, refusal.message};
    case RefusalCode::FailedPrecondition: return {grpc::StatusCode::FAILED_PRECONDITION, refusal.message};
    case RefusalCode::Aborted: return {grpc::StatusCode::ABORTED, refusal.message};
    case RefusalCode::DeadlineExceeded: return {grpc::StatusCode::DEADLINE_EXCEEDED, refusal.message};
    case RefusalCode::Internal: break;
  }
  return {grpc::StatusCode::INTERNAL, refusal.message};
}

grpc::ServerUnaryReactor* refuse(grpc::CallbackServerContext& context, const grpc::Status& status) {
  auto* reactor = context.DefaultReactor();
  reactor->Finish(status);
  return reactor;
}

grpc::Status unimplemented() { return {grpc::StatusCode::UNIMPLEMENTED, "nobody answers this call here"}; }

/// A text may hold many pods: how many is known only once it is read.
std::size_t weight_of_batch(std::size_t bytes) {
  constexpr std::size_t smallest_pod = 32;
  return weight_of_call(std::min(bytes / smallest_pod, most_asked_pods), bytes);
}

/// The stream of a caller who may not have one.
class RefusedStream final : public grpc::ServerWriteReactor<v1::Event> {
 public:
  explicit RefusedStream(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

template <class T>
grpc::Status put(Answer<T> answer, T& reply) {
  if (!answer) return to_status(answer.error());
  reply = *std::move(answer);
  return grpc::Status::OK;
}

}  // namespace

EvictionService::EvictionService(events::EventLog& log, std::shared_ptr<EventStreams> streams,
                                 std::shared_ptr<OpenCalls> calls, Handlers handlers, Identify identify)
    : log_(log),
      streams_(std::move(streams)),
      calls_(std::move(calls)),
      unary_(log.get_executor(), calls_),
      handlers_(std::move(handlers)),
      identify_(std::move(identify)) {}

grpc::ServerWriteReactor<v1::Event>* EvictionService::StreamEvents(grpc::CallbackServerContext* context,
                                                                   const v1::StreamEventsRequest* request) {
  if (const auto status = permitted(*context, "StreamEvents"); !status.ok()) return new RefusedStream(status);
  return streams_->open(*context, calls_, *request);
}

grpc::ServerUnaryReactor* EvictionService::GetNodeStatus(grpc::CallbackServerContext* context,
                                                         const v1::GetNodeStatusRequest*, v1::NodeStatus* reply) {
  return look(*context, "GetNodeStatus", true, [this, reply] {
    *reply = handlers_.status();
    reply->set_last_event_sequence(log_.last_sequence());
    return grpc::Status::OK;
  });
}

grpc::ServerUnaryReactor* EvictionService::Admit(grpc::CallbackServerContext* context, const v1::AdmitRequest* request,
                                                 v1::AdmitResponse* reply) {
  return ask(*context, {.call = "Admit",
                        .pods = [&] { return read_asked_pods(*request, handlers_.admitter.memory_capacity); },
                        .weight = weight_of_call(1, request->ByteSizeLong()),
                        .reserve = request->reserve(),
                        .reply = [reply](Answers answers) { *reply = std::move(answers.front()); }});
}

grpc::ServerUnaryReactor* EvictionService::AdmitBatch(grpc::CallbackServerContext* context,
                                                      const v1::AdmitBatchRequest* request,
                                                      v1::AdmitBatchResponse* reply) {
  return ask(*context, {.call = "AdmitBatch",
                        .pods = [&] { return read_asked_pods(*request); },
                        .weight = weight_of_batch(request->ByteSizeLong()),
                        .reserve = request->reserve(),
                        .reply =
                            [reply](Answers answers) {
                              for (auto& answer : answers) *reply->add_answers() = std::move(answer);
                            }});
}

grpc::ServerUnaryReactor* EvictionService::GetThresholds(grpc::CallbackServerContext* context,
                                                         const v1::GetThresholdsRequest*, v1::ThresholdSet* reply) {
  return look(*context, "GetThresholds", handlers_.thresholds != nullptr, [this, reply] {
    *reply = handlers_.thresholds();
    return grpc::Status::OK;
  });
}

grpc::ServerUnaryReactor* EvictionService::UpdateThresholds(grpc::CallbackServerContext* context,
                                                            const v1::UpdateThresholdsRequest* request,
                                                            v1::UpdateThresholdsResponse* reply) {
  const auto access = request->validate_only() ? Access::Look : Access::Change;
  const auto caller = identify_(*context);
  auto place = unary_.admit(caller.account, weight_of_call(0, request->ByteSizeLong()));
  if (!place) return refuse(*context, place.error());
  // A copy: what is answered late may find the call ended, and is told of all the same.
  return unary_.answer_later(
      *std::move(place), [this, access, caller, asked = std::make_shared<const v1::UpdateThresholdsRequest>(*request),
                          reply](const auto& answer) {
        const auto end = [access, caller, asked, audit = handlers_.audit, thresholds = handlers_.thresholds](
                             const grpc::Status& status, const v1::UpdateThresholdsResponse* response) {
          if (access == Access::Look || !audit) return;
          const auto now = response == nullptr && thresholds ? std::optional(thresholds()) : std::nullopt;
          audit(audit_thresholds(caller, status, *asked, response, now ? &*now : nullptr));
        };
        auto status = permit(caller, access, "UpdateThresholds");
        if (status.ok() && !handlers_.update_thresholds) status = unimplemented();
        if (!status.ok()) {
          end(status, nullptr);
          return answer([status] { return status; });
        }
        handlers_.update_thresholds(*asked, [answer, end, reply](Answer<v1::UpdateThresholdsResponse> response) {
          end(response ? grpc::Status::OK : to_status(response.error()), response ? &*response : nullptr);
          answer([response = std::move(response), reply] { return put(response, *reply); });
        });
      });
}

grpc::ServerUnaryReactor* EvictionService::SuggestThresholds(grpc::CallbackServerContext* context,
                                                             const v1::SuggestThresholdsRequest*,
                                                             v1::SuggestThresholdsResponse* reply) {
  return look(*context, "SuggestThresholds", handlers_.suggest_thresholds != nullptr,
              [this, reply] { return put(handlers_.suggest_thresholds(), *reply); });
}

grpc::ServerUnaryReactor* EvictionService::RankPods(grpc::CallbackServerContext* context,
                                                    const v1::RankPodsRequest* request, v1::RankPodsResponse* reply) {
  return look(*context, "RankPods", handlers_.rank_pods != nullptr,
              [this, request, reply] { return put(handlers_.rank_pods(*request), *reply); });
}

grpc::Status EvictionService::permitted(const grpc::CallbackServerContext& context, std::string_view call) const {
  return permit(identify_(context), Access::Look, call);
}

grpc::ServerUnaryReactor* EvictionService::look(grpc::CallbackServerContext& context, std::string_view call,
                                                bool handled, Fill answer) {
  const auto caller = identify_(context);
  auto status = permit(caller, Access::Look, call);
  if (status.ok() && !handled) status = unimplemented();
  if (!status.ok()) return refuse(context, status);
  auto place = unary_.admit(caller.account);
  if (!place) return refuse(context, place.error());
  return unary_.answer(*std::move(place), [answer = std::move(answer)] { return std::optional(answer()); });
}

struct EvictionService::Deciding {
  std::shared_ptr<const Result<AskedPods>> pods;
  bool reserve = false;
  std::unique_ptr<AdmissionTask> task{};  // since the first turn
  Answers answers{};
};

/// The texts are read on gRPC's thread: a large one must not hold up the reactor. Not before the caller is known to be
/// allowed to ask and there is room for the call, so a refused change is told without its pods.
grpc::ServerUnaryReactor* EvictionService::ask(grpc::CallbackServerContext& context, const Question& question) {
  const auto caller = identify_(context);
  const auto allowed = question.reserve ? permit(caller, Access::Change, fmt::format("{} with reserve", question.call))
                                        : permit(caller, Access::Look, question.call);
  if (!allowed.ok() && !question.reserve) return refuse(context, allowed);
  auto place = unary_.admit(caller.account, question.weight);
  if (!place) return refuse(context, place.error());
  const auto pods = std::make_shared<const Result<AskedPods>>(allowed.ok() ? question.pods() : AskedPods{});
  const auto deciding = std::make_shared<Deciding>(pods, question.reserve);
  return unary_.answer(
      *std::move(place),
      [this, caller, allowed, deciding, call = question.call, reply = question.reply]() -> std::optional<grpc::Status> {
        std::optional<Decided> decided = Decided(std::unexpected(allowed));
        if (allowed.ok()) decided = decide_some(*deciding);
        if (!decided) return std::nullopt;
        const auto status = *decided ? grpc::Status::OK : decided->error();
        if (deciding->reserve && handlers_.audit)
          handlers_.audit(audit_admission(caller, call, status, deciding->pods->value_or(AskedPods{}),
                                          decided->value_or(Answers{})));
        if (*decided) reply(**std::move(decided));
        return status;
      });
}

std::optional<EvictionService::Decided> EvictionService::decide_some(Deciding& deciding) const {
  const auto refuse = [](grpc::StatusCode code, const std::string& why) {
    return Decided(std::unexpected(grpc::Status(code, why)));
  };
  auto& [pods, reserve, task, answers] = deciding;
  if (!task) {
    if (!handlers_.admitter.admit) return Decided(std::unexpected(unimplemented()));
    if (!*pods) return refuse(grpc::StatusCode::INVALID_ARGUMENT, pods->error().message);
    task = handlers_.admitter.admit(AskedPodsPtr(pods, &**pods), reserve);
  }
  auto some = task->decide_some();
  if (!some) return refuse(grpc::StatusCode::FAILED_PRECONDITION, some.error().message);
  std::ranges::move(*some, std::back_inserter(answers));
  if (answers.size() < (*pods)->size()) return std::nullopt;
  return Decided(std::move(answers));
}

}  // namespace evictd::api
