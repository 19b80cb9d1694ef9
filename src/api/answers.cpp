#include "api/answers.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <exception>
#include <functional>
#include <iterator>
#include <string_view>
#include <utility>

#include "api/audit.hpp"
#include "async/offload.hpp"

namespace asio = boost::asio;

namespace evictd::api {
namespace {

/// A slice of no time is over once one step was taken, however short that was.
constexpr std::chrono::microseconds one_step{0};

}  // namespace

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

/// A question about pods.
struct Answers::Question {
  std::string_view call;
  Caller caller;
  grpc::Status allowed;
  bool reserve = false;
  std::function<Result<AdmissionRequests>()> pods;  ///< reads them, on the readers' thread
  std::function<void()> confirm;                    ///< the answer will take its time
  std::shared_ptr<Departure> departure;             ///< of the client
};

Answers::Answers(events::EventLog& log, const Handlers& handlers, asio::any_io_executor readers)
    : log_(log),
      handlers_(handlers),
      reactor_(log.get_executor()),
      readers_(std::move(readers)),
      turns_(std::make_shared<events::Turns>(reactor_, one_step)) {}

v1::NodeStatus Answers::status() const {
  auto status = handlers_.status.status();
  status.set_last_event_sequence(log_.last_sequence());
  return status;
}

Answers::Awaitable Answers::admit(AskedPtr<v1::AdmitRequest, v1::AdmitResponse> asked) {
  const auto question = std::make_shared<Question>();
  question->call = "Admit";
  question->caller = asked->caller;
  question->allowed = asked->allowed;
  question->reserve = asked->request.reserve();
  const auto capacity = handlers_.admitter != nullptr ? handlers_.admitter->memory_capacity() : 0;  // null: refused
  question->confirm = [asked] { asked->confirm(); };
  question->departure = asked->departure;
  auto trusted = handlers_.admitter != nullptr ? handlers_.admitter->trusted_namespaces() : pods::TrustedNamespaces{{}};
  question->pods = [asked, capacity, trusted = std::move(trusted)] {
    return read_admission_requests(asked->request, capacity, trusted);
  };
  const auto decided = co_await decide(question);
  if (!decided) co_return;
  if (!*decided) co_return asked->refuse(decided->error());
  asked->answer((*decided)->front());
}

Answers::Awaitable Answers::admit_batch(AskedPtr<v1::AdmitBatchRequest, v1::AdmitBatchResponse> asked) {
  const auto question = std::make_shared<Question>();
  question->call = "AdmitBatch";
  question->caller = asked->caller;
  question->allowed = asked->allowed;
  question->reserve = asked->request.reserve();
  question->confirm = [asked] { asked->confirm(); };
  question->departure = asked->departure;
  question->pods = [asked] { return read_admission_requests(asked->request); };
  auto decided = co_await decide(question);
  if (!decided) co_return;
  if (!*decided) co_return asked->refuse(decided->error());
  v1::AdmitBatchResponse response;
  for (auto& answer : **decided) *response.add_answers() = std::move(answer);
  asked->answer(response);
}

/// The texts are read by another thread: a large one must not hold up the reactor. Not before the caller is known to be
/// allowed to ask, so a refused change is told without its pods; and not for a client that has left.
asio::awaitable<std::optional<Answers::Decided>> Answers::decide(std::shared_ptr<const Question> question) {
  std::optional<Decided> decided(std::unexpected(question->allowed));
  AdmissionRequestsPtr pods = std::make_shared<const AdmissionRequests>();
  if (question->allowed.ok()) {
    auto reading = [question]() -> Result<AdmissionRequests> {
      if (question->departure->has_left()) return AdmissionRequests{};
      return question->pods();
    };
    auto read = co_await async::offload(readers_, std::move(reading));
    if (read) pods = std::make_shared<const AdmissionRequests>(*std::move(read));
    decided = co_await decide_all(question, pods);
    if (decided && *decided && !read)
      decided.emplace(std::unexpected(grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, read.error().message)));
  }
  if (question->reserve && handlers_.auditor != nullptr) {
    const auto outcome = decided.value_or(std::unexpected(rpc::shutting_down()));  // pods may have been evicted for it
    const auto status = outcome ? grpc::Status::OK : outcome.error();
    tell(question->caller, status,
         audit_admission(question->caller, question->call, status, *pods,
                         outcome.value_or(std::vector<v1::AdmitResponse>{})));
  }
  co_return decided;
}

/// Waits for one turn at least, and for another once others were asked or a disk had to take what was given, so that
/// nothing goes on when all was stopped. A pod for which others make room waits for as long as its client does; of one
/// that left nothing stays reserved.
asio::awaitable<std::optional<Answers::Decided>> Answers::decide_all(std::shared_ptr<const Question> question,
                                                                     AdmissionRequestsPtr pods) {
  const auto& departure = *question->departure;
  std::vector<v1::AdmitResponse> answers;
  std::unique_ptr<AdmissionTask> task;
  bool goes_on = co_await turn();
  while (goes_on && !departure.has_left() && answers.size() < pods->size()) {
    if (!task) task = handlers_.admitter->admit(pods, question->reserve);
    const bool asks_others = task->asks_others();
    if (asks_others) question->confirm();
    co_await task->prepare(departure);
    if (departure.has_left()) break;
    auto some = task->decide_some();
    if (!some)
      co_return Decided(std::unexpected(grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, some.error().message)));
    co_await task->carry_out(*some);
    std::ranges::move(*some, std::back_inserter(answers));
    if (answers.size() == pods->size() && !asks_others) break;
    const auto bell = std::make_shared<events::Turns::Bell>();
    if (some->empty())
      ring_when_room(*question, *task, bell);
    else
      bell->ring();
    goes_on = co_await turns_->turn(bell);
  }
  if (goes_on && !departure.has_left() && task && task->has_to_save()) {
    question->confirm();
    co_await task->save(answers);
    goes_on = co_await turn();
  }
  if (!goes_on) co_return std::nullopt;
  if (departure.has_left())
    co_return Decided(std::unexpected(grpc::Status(grpc::StatusCode::CANCELLED, "the client went away")));
  if (task) task->keep();
  co_return Decided(std::move(answers));
}

void Answers::tell(const Caller& caller, const grpc::Status& outcome, v1::Audit audit) {
  if (refusals_.is_told(caller, outcome, std::chrono::steady_clock::now(), audit)) handlers_.auditor->audit(audit);
}

void Answers::ring_when_room(const Question& question, AdmissionTask& task,
                             const std::shared_ptr<events::Turns::Bell>& bell) {
  question.confirm();
  task.when_room([bell] { bell->ring(); });
  question.departure->tell([bell] { bell->ring(); });
}

/// What is answered late may find the call ended, and is told of all the same.
Answers::Awaitable Answers::update_thresholds(
    AskedPtr<v1::UpdateThresholdsRequest, v1::UpdateThresholdsResponse> asked) {
  const auto& request = asked->request;
  auto status = asked->allowed;
  std::optional<v1::UpdateThresholdsResponse> response;
  if (status.ok()) {
    auto answer = co_await ask_for(request);
    if (answer)
      response = *std::move(answer);
    else
      status = to_status(answer.error());
  }
  if (!request.validate_only() && handlers_.auditor != nullptr) {
    const auto now =
        !response && handlers_.thresholds != nullptr ? std::optional(handlers_.thresholds->thresholds()) : std::nullopt;
    tell(asked->caller, status,
         audit_thresholds(asked->caller, status, request, response ? &*response : nullptr, now ? &*now : nullptr));
  }
  if (response)
    asked->answer(*response);
  else
    asked->refuse(status);
}

/// Asks in a turn of the reactor to come: an answer may be there at once, and a coroutine cannot go on while it is on
/// its way to sleep.
asio::awaitable<Answer<v1::UpdateThresholdsResponse>> Answers::ask_for(const v1::UpdateThresholdsRequest& request) {
  using Response = Answer<v1::UpdateThresholdsResponse>;
  auto initiate = [this, &request](auto handler) {
    const auto done = std::make_shared<ThresholdHandler::UpdateDone>(std::move(handler));
    asio::post(reactor_, [this, &request, done] {
      const auto answer = [done](Response response) {
        if (*done) std::exchange(*done, nullptr)(std::move(response));
      };
      try {
        handlers_.thresholds->update_thresholds(request, answer);
      } catch (const std::exception& error) {
        answer(std::unexpected(Refusal{RefusalCode::Internal, error.what()}));
      }
    });
  };
  co_return co_await asio::async_initiate<const asio::use_awaitable_t<>, void(Response)>(std::move(initiate),
                                                                                         asio::use_awaitable);
}

}  // namespace evictd::api
