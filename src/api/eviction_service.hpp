#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/answers.hpp"
#include "api/caller.hpp"
#include "api/event_writer.hpp"
#include "api/permission.hpp"
#include "api/pre_kill_stream.hpp"
#include "api/stream.hpp"
#include "evictd.grpc.pb.h"
#include "rpc/server/call_budget.hpp"
#include "rpc/server/open_calls.hpp"
#include "rpc/server/unary_call.hpp"

namespace evictd::api {

/// evictd.v1.EvictionService on a completion queue: takes calls over to the reactor, those that the caller may make.
///
/// One for each way in; they share all but `identify`, the calls in flight and their turns: a flood on one way in
/// leaves room on the others. Whoever asks for a change is told of by api::Auditor, once, with what came of it; only
/// of a call that is too large, of one too many, and of one that the reactor does not have when the server shuts down,
/// nothing came.
class EvictionService {
 public:
  EvictionService(std::shared_ptr<EventStreams> streams, std::shared_ptr<PreKillStreams> pre_kills,
                  std::shared_ptr<rpc::OpenCalls> calls, std::shared_ptr<Answers> answers, Identify identify);
  EvictionService(const EvictionService&) = delete;
  EvictionService& operator=(const EvictionService&) = delete;

  [[nodiscard]] grpc::Service& service() { return service_; }
  /// Takes calls from now on, until the server shuts down. The queue has a CompletionThread.
  void listen(grpc::ServerCompletionQueue& queue);
  /// Whether gRPC has not told everything of some call yet, or a call is waited for: then the queue must not be shut
  /// down, since what a call ends by would be begun on it. Any thread.
  [[nodiscard]] bool has_calls() const;
  /// Whether a unary call is in flight, also of a client that has gone. Any thread.
  [[nodiscard]] bool is_answering() const { return !budget_->is_whole(); }

 private:
  using Service = v1::EvictionService::AsyncService;

  /// What a call takes.
  struct Terms {
    std::string_view call;  ///< as a refusal names it
    bool is_answered = true;
    Access access = Access::Look;  ///< a change that is refused is told of
    std::size_t weight = 1;
    grpc::Status size{};  ///< not OK: it has too many parts, so that even to throw it away would keep the reactor busy
  };
  /// How gRPC is asked for the next call of a method.
  template <class Base, class Request, class Response>
  using Method = void (Base::*)(grpc::ServerContext*, Request*, grpc::ServerAsyncResponseWriter<Response>*,
                                grpc::CompletionQueue*, grpc::ServerCompletionQueue*, void*);
  template <class Base, class Request, class Response, class TermsOf, class Begin>
  class Served;

  /// Has each call of the method begun on the reactor, as one coroutine. What its caller may not do, what nobody
  /// answers, what is too large and what there is no room for is refused here, on the queue's thread. `terms(request)`
  /// gives its Terms, `begin(answers, asked)` the coroutine.
  template <class Base, class Request, class Response, class TermsOf, class Begin>
  void serve(Method<Base, Request, Response> method, TermsOf terms, Begin begin);
  /// The same for a call that changes nothing: `answer(answers, request)` gives the Answer at once.
  template <class Base, class Request, class Response, class Give>
  void serve_look(Method<Base, Request, Response> method, std::string_view call, bool is_answered, Give answer);
  void serve_streams();
  void serve_pre_kills();

  Service service_;
  grpc::ServerCompletionQueue* queue_ = nullptr;
  std::shared_ptr<EventStreams> streams_;
  std::shared_ptr<PreKillStreams> pre_kills_;
  std::shared_ptr<rpc::OpenCalls> calls_;
  std::shared_ptr<rpc::CallBudget> budget_;
  std::shared_ptr<Answers> answers_;
  Identify identify_;
  std::vector<std::weak_ptr<const void>> methods_;  // shared by the calls of each
};

}  // namespace evictd::api
