#pragma once
#include <grpcpp/server_context.h>
#include <grpcpp/support/async_unary_call.h>

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "rpc/server/call_budget.hpp"
#include "rpc/server/completion.hpp"
#include "rpc/server/open_calls.hpp"

namespace evictd::rpc {

/// A unary call on a server's completion queue, from the wait for it to its end. Each of its tags owns it while gRPC
/// has that tag; OpenCalls has a share while it is being answered. The part that answers it has a weak one: gRPC's part
/// of a call must not hang on a reactor that does not turn any more.
template <class Request, class Response>
class UnaryCall final : public OpenCall, public std::enable_shared_from_this<UnaryCall<Request, Response>> {
 public:
  using Pointer = std::shared_ptr<UnaryCall>;

  /// Whose calls these are; shared by them.
  class Method {
   public:
    Method() = default;
    Method(const Method&) = delete;
    Method& operator=(const Method&) = delete;
    virtual ~Method() = default;

    /// Asks gRPC for the next call of the method.
    virtual void request(grpc::ServerContext* context, Request* request,
                         grpc::ServerAsyncResponseWriter<Response>* responder, void* tag) const = 0;
    /// Given each call on the queue's thread: it either begins it or refuses it.
    virtual void arrived(const Pointer& call) const = 0;
  };

  /// Takes calls until the server shuts down.
  static void listen(std::shared_ptr<const Method> method) {
    const auto call = std::make_shared<UnaryCall>(std::move(method));
    call->context_.AsyncNotifyWhenDone(call->left_.lend(call));
    call->method_->request(&call->context_, &call->request_, &call->responder_, call->arrived_.lend(call));
  }

  /// By `listen` alone.
  explicit UnaryCall(std::shared_ptr<const Method> method) : method_(std::move(method)) {}

  [[nodiscard]] const grpc::ServerContext& context() const { return context_; }
  [[nodiscard]] Request& request() { return request_; }

  /// `place` is held until the call is over. `client_left` is called on the queue's thread if the client leaves before
  /// there is an answer. False: the server shuts down, and the call has ended. On the queue's thread.
  [[nodiscard]] bool begin(std::shared_ptr<OpenCalls> open, CallBudget::Place place,
                           std::move_only_function<void()> client_left) {
    open_ = std::move(open);
    place_ = std::move(place);
    client_left_ = std::move(client_left);
    if (open_->add(this->shared_from_this())) return true;
    abort(shutting_down());
    return false;
  }

  /// Tells the client, by the initial metadata, that its answer will take its time. On the reactor.
  void confirm() {
    if (ended_ || std::exchange(confirmed_, true)) return;
    responder_.SendInitialMetadata(confirmation_.lend(this->shared_from_this()));
  }
  /// Ends the call, unless it has ended already. On the reactor.
  void answer(const Response& response) {
    if (ended_.exchange(true)) return;
    responder_.Finish(response, grpc::Status::OK, finished_.lend(this->shared_from_this()));
  }
  /// The same without a response; the status must not be OK. Also on the queue's thread, for a call that was not begun.
  void abort(const grpc::Status& status) override {
    if (ended_.exchange(true)) return;
    responder_.FinishWithError(presentable(status), finished_.lend(this->shared_from_this()));
  }

 private:
  class Tag final : public Completion {
   public:
    using Function = void (UnaryCall::*)(bool ok);
    explicit Tag(Function function) : function_(function) {}

    [[nodiscard]] void* lend(Pointer owner) {
      owner_ = std::move(owner);
      return tag();
    }
    /// gRPC will not give it back.
    void forget() { owner_.reset(); }
    void complete(bool ok) override {
      const auto owner = std::exchange(owner_, nullptr);
      (owner.get()->*function_)(ok);
    }

   private:
    Function function_;
    Pointer owner_;
  };

  // All on the queue's thread.
  void on_arrived(bool ok) {
    if (!ok) return left_.forget();  // the server shuts down; that it was left is told of a call alone
    listen(method_);
    method_->arrived(this->shared_from_this());
  }
  /// Told of every call, of one that ends by itself as well.
  void on_left(bool /*ok*/) {
    if (auto client_left = std::exchange(client_left_, nullptr); client_left && !ended_) client_left();
  }
  void on_confirmed(bool /*ok*/) {}
  void on_finished(bool /*ok*/) {
    if (open_) open_->remove(this);
  }

  std::shared_ptr<const Method> method_;
  std::shared_ptr<OpenCalls> open_;
  CallBudget::Place place_;
  std::move_only_function<void()> client_left_;
  grpc::ServerContext context_;
  Request request_;
  grpc::ServerAsyncResponseWriter<Response> responder_{&context_};
  std::atomic<bool> ended_ = false;
  bool confirmed_ = false;
  Tag arrived_{&UnaryCall::on_arrived};
  Tag left_{&UnaryCall::on_left};
  Tag confirmation_{&UnaryCall::on_confirmed};
  Tag finished_{&UnaryCall::on_finished};
};

}  // namespace evictd::rpc
