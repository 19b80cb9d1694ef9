#include "api/eviction_service.hpp"

#include <evictd.pb.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <functional>
#include <memory>
#include <utility>

#include "async/spawn.hpp"

namespace asio = boost::asio;

namespace evictd::api {
namespace {

/// A text may hold many pods: how many is known only once it is read.
std::size_t weight_of_batch(std::size_t bytes) {
  constexpr std::size_t smallest_pod = 32;
  return rpc::weight_of_call(std::min(bytes / smallest_pod, most_admission_requests), bytes);
}

grpc::Status too_many() {
  return {grpc::StatusCode::RESOURCE_EXHAUSTED, "too many calls are being answered already: try again when some are"};
}

/// `what`: the field.
grpc::Status check_size(std::string_view what, int size, std::size_t most) {
  if (static_cast<std::size_t>(size) <= most) return grpc::Status::OK;
  return {grpc::StatusCode::INVALID_ARGUMENT,
          fmt::format("{}: there are {}, and at most {} are taken at once", what, size, most)};
}

grpc::Status unimplemented() { return {grpc::StatusCode::UNIMPLEMENTED, "nobody answers this call here"}; }

template <class AskedPtr, class Give>
void answer_at_once(Answers& answers, const AskedPtr& asked, const Give& give) {
  const auto answer = give(answers, asked->request);
  if (answer)
    asked->answer(*answer);
  else
    asked->refuse(to_status(answer.error()));
}

asio::awaitable<void> nothing_more() { co_return; }

/// Has the reactor know that the client has left.
std::move_only_function<void()> telling(const asio::any_io_executor& reactor,
                                        const std::shared_ptr<Departure>& departure) {
  return [reactor, weak = std::weak_ptr(departure)] {
    asio::post(reactor, [weak] {
      if (const auto told = weak.lock()) told->leave();
    });
  };
}

/// A call on the reactor. `begin` holds what answers it for as long as it takes. It is no template: GCC 12 miscompiles
/// a coroutine that is given an empty closure.
asio::awaitable<void> run(std::shared_ptr<Answers> answers, std::function<asio::awaitable<void>()> begin) {
  const bool has_turn = co_await answers->turn();
  if (has_turn) co_await begin();
}

}  // namespace

EvictionService::EvictionService(std::shared_ptr<EventStreams> streams, std::shared_ptr<PreKillStreams> pre_kills,
                                 std::shared_ptr<rpc::OpenCalls> calls, std::shared_ptr<Answers> answers,
                                 Identify identify)
    : streams_(std::move(streams)),
      pre_kills_(std::move(pre_kills)),
      calls_(std::move(calls)),
      budget_(std::make_shared<rpc::CallBudget>(rpc::CallLimits{})),
      answers_(std::move(answers)),
      identify_(std::move(identify)) {}

void EvictionService::listen(grpc::ServerCompletionQueue& queue) {
  queue_ = &queue;
  const auto& handlers = answers_->handlers();
  serve_streams();
  serve_pre_kills();
  serve_look(&Service::RequestGetNodeStatus, "GetNodeStatus", true,
             [](Answers& answers, const auto&) { return Answer<v1::NodeStatus>(answers.status()); });
  serve_look(&Service::RequestGetThresholds, "GetThresholds", handlers.thresholds != nullptr,
             [](Answers& answers, const auto&) {
               return Answer<v1::ThresholdSet>(answers.handlers().thresholds->thresholds());
             });
  serve_look(&Service::RequestSuggestThresholds, "SuggestThresholds", handlers.thresholds != nullptr,
             [](Answers& answers, const auto&) { return answers.handlers().thresholds->suggest_thresholds(); });
  serve_look(&Service::RequestRankPods, "RankPods", handlers.ranking != nullptr,
             [](Answers& answers, const auto& request) { return answers.handlers().ranking->rank_pods(request); });
  serve(
      &Service::RequestAdmit,
      [&handlers](const v1::AdmitRequest& request) {
        return Terms{.call = request.reserve() ? "Admit with reserve" : "Admit",
                     .is_answered = handlers.admitter != nullptr,
                     .access = request.reserve() ? Access::Change : Access::Look,
                     .weight = rpc::weight_of_call(1, request.ByteSizeLong())};
      },
      [](Answers& answers, const auto& asked) { return answers.admit(asked); });
  serve(
      &Service::RequestAdmitBatch,
      [&handlers](const v1::AdmitBatchRequest& request) {
        return Terms{.call = request.reserve() ? "AdmitBatch with reserve" : "AdmitBatch",
                     .is_answered = handlers.admitter != nullptr,
                     .access = request.reserve() ? Access::Change : Access::Look,
                     .weight = weight_of_batch(request.ByteSizeLong()),
                     .size = check_size("pods", request.pods_size(), most_admission_requests)};
      },
      [](Answers& answers, const auto& asked) { return answers.admit_batch(asked); });
  serve(
      &Service::RequestUpdateThresholds,
      [&handlers](const v1::UpdateThresholdsRequest& request) {
        return Terms{.call = "UpdateThresholds",
                     .is_answered = handlers.thresholds != nullptr,
                     .access = request.validate_only() ? Access::Look : Access::Change,
                     .weight = rpc::weight_of_call(0, request.ByteSizeLong()),
                     .size = check_size("changes", request.changes_size(), most_threshold_changes)};
      },
      [](Answers& answers, const auto& asked) { return answers.update_thresholds(asked); });
}

bool EvictionService::has_calls() const {
  return std::ranges::any_of(methods_, [](const auto& method) { return !method.expired(); });
}

void EvictionService::serve_streams() {
  auto arrived = [this](const std::shared_ptr<EventWriter>& writer) {
    const auto caller = identify_(writer->context());
    const auto allowed = permit(caller, Access::Look, "StreamEvents");
    if (!allowed.ok()) return writer->finish(allowed);
    streams_->open(writer, calls_, caller.role);
  };
  auto method = std::make_shared<const EventWriter::Arrived>(std::move(arrived));
  methods_.emplace_back(method);
  EventWriter::listen(service_, *queue_, std::move(method));
}

void EvictionService::serve_pre_kills() {
  auto arrived = [this](const std::shared_ptr<PreKillCall>& call) {
    auto caller = identify_(call->context());
    auto place = budget_->take(caller.account, 1);
    if (!place) return call->finish(too_many());
    pre_kills_->open(call, calls_, std::move(caller), std::move(place));
  };
  auto method = std::make_shared<const PreKillCall::Arrived>(std::move(arrived));
  methods_.emplace_back(method);
  PreKillCall::listen(service_, *queue_, std::move(method));
}

template <class Base, class Request, class Response, class TermsOf, class Begin>
class EvictionService::Served final : public rpc::UnaryCall<Request, Response>::Method {
 public:
  using Call = rpc::UnaryCall<Request, Response>;

  Served(EvictionService& service, Method<Base, Request, Response> method, TermsOf terms, Begin begin)
      : service_(service), method_(method), terms_(std::move(terms)), begin_(std::move(begin)) {}

  void request(grpc::ServerContext* context, Request* request, grpc::ServerAsyncResponseWriter<Response>* responder,
               void* tag) const override {
    (service_.service_.*method_)(context, request, responder, service_.queue_, service_.queue_, tag);
  }

  void arrived(const typename Call::Pointer& call) const override {
    auto request = std::move(call->request());  // goes on this thread where it is refused, whether or not that is read
    const auto terms = terms_(request);
    auto caller = service_.identify_(call->context());
    auto allowed = permit(caller, terms.access, terms.call);
    if (allowed.ok() && !terms.is_answered) allowed = unimplemented();
    if (allowed.ok() && !terms.size.ok()) return call->abort(terms.size);
    if (!allowed.ok() && terms.access == Access::Look) return call->abort(allowed);
    if (!terms.size.ok()) request.Clear();  // only that it was refused is told
    auto place = service_.budget_->take(caller.account, terms.weight);
    if (!place) return call->abort(too_many());
    request.DiscardUnknownFields();  // of which there may be very many
    const auto& answers = service_.answers_;
    const auto departure = std::make_shared<Departure>();
    if (!call->begin(service_.calls_, std::move(place), telling(answers->reactor(), departure))) return;
    auto asked = std::make_shared<const Asked<Request, Response>>(std::move(caller), std::move(allowed),
                                                                  std::move(request), call, departure);
    std::function<asio::awaitable<void>()> answer = [answers = answers.get(), asked = std::move(asked),
                                                     begin = begin_] { return begin(*answers, asked); };
    async::spawn_contained(answers->reactor(), run(answers, std::move(answer)),
                           [weak = std::weak_ptr(call)](const std::string& reason) {
                             const auto status = rpc::given_up(reason);
                             if (const auto open = weak.lock()) open->abort(status);
                           });
  }

 private:
  EvictionService& service_;
  Method<Base, Request, Response> method_;
  TermsOf terms_;
  Begin begin_;
};

template <class Base, class Request, class Response, class TermsOf, class Begin>
void EvictionService::serve(Method<Base, Request, Response> method, TermsOf terms, Begin begin) {
  using Mine = Served<Base, Request, Response, TermsOf, Begin>;
  auto served = std::make_shared<const Mine>(*this, method, std::move(terms), std::move(begin));
  methods_.emplace_back(served);
  rpc::UnaryCall<Request, Response>::listen(std::move(served));
}

template <class Base, class Request, class Response, class Give>
void EvictionService::serve_look(Method<Base, Request, Response> method, std::string_view call, bool is_answered,
                                 Give answer) {
  const auto terms = [call, is_answered](const Request& request) {
    return Terms{.call = call, .is_answered = is_answered, .weight = rpc::weight_of_call(0, request.ByteSizeLong())};
  };
  serve(method, terms, [answer](Answers& answers, const auto& asked) {
    answer_at_once(answers, asked, answer);
    return nothing_more();
  });
}

}  // namespace evictd::api
