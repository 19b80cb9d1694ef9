#pragma once
#include <grpcpp/server_context.h>
#include <grpcpp/support/async_unary_call.h>

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "api/call_budget.hpp"
#include "api/open_calls.hpp"
#include "cri/completion.hpp"

namespace evictd::api {

/// A unary call on a server's completion queue, from the wait for it to its end. It owns itself while gRPC has its
/// tag; OpenCalls has a share while it is being answered. The part that answers it has a weak one: gRPC's part of a
/// call must not hang on a reactor that does not turn any more.
template <class Request, class Response>
class UnaryCall final : public OpenCall,
                        public cri::Completion,
                        public std::enable_shared_from_this<UnaryCall<Request, Response>> {
 public:
  using Pointer = std::shared_ptr<UnaryCall>;

  struct Method {
    /// Asks gRPC for the next call of the method.
    std::function<void(grpc::ServerContext*, Request*, grpc::ServerAsyncResponseWriter<Response>*, void* tag)> request;
    /// Given each call on the queue's thread: it either begins it or refuses it.
    std::function<void(const Pointer&)> arrived;
  };

  /// Takes calls until the server shuts down.
  static void listen(std::shared_ptr<const Method> method) {
    const auto call = std::make_shared<UnaryCall>(std::move(method));
    call->self_ = call;
    call->method_->request(&call->context_, &call->request_, &call->responder_, call->tag());
  }

  /// By `listen` alone.
  explicit UnaryCall(std::shared_ptr<const Method> method) : method_(std::move(method)) {}

  [[nodiscard]] const grpc::ServerContext& context() const { return context_; }
  [[nodiscard]] Request& request() { return request_; }

  /// `place` is held until the call is over. False: the server shuts down, and the call has ended. On the queue's
  /// thread.
  [[nodiscard]] bool begin(std::shared_ptr<OpenCalls> open, CallBudget::Place place) {
    open_ = std::move(open);
    place_ = std::move(place);
    if (open_->add(this->shared_from_this())) return true;
    abort(shutting_down());
    return false;
  }

  /// Ends the call, unless it has ended already. On the reactor.
  void answer(const Response& response) {
    if (ended_.exchange(true)) return;
    self_ = this->shared_from_this();
    responder_.Finish(response, grpc::Status::OK, tag());
  }
  /// The same without a response; the status must not be OK. Also on the queue's thread, for a call that was not begun.
  void abort(const grpc::Status& status) override {
    if (ended_.exchange(true)) return;
    self_ = this->shared_from_this();
    responder_.FinishWithError(status, tag());
  }

  void complete(bool ok) override {
    const auto self = std::exchange(self_, nullptr);
    if (ended_) {
      if (open_) open_->remove(this);
    } else if (ok) {  // else the server shuts down
      listen(method_);
      method_->arrived(self);
    }
  }

 private:
  std::shared_ptr<const Method> method_;
  std::shared_ptr<OpenCalls> open_;
  CallBudget::Place place_;
  grpc::ServerContext context_;
  Request request_;
  grpc::ServerAsyncResponseWriter<Response> responder_{&context_};
  std::atomic<bool> ended_ = false;
  std::shared_ptr<UnaryCall> self_;  // while gRPC has the tag
};

}  // namespace evictd::api
