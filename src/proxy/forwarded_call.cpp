#include "proxy/forwarded_call.hpp"

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "proxy/device_additions.hpp"
#include "proxy/gate.hpp"
#include "proxy/gated_method.hpp"
#include "proxy/metadata.hpp"

namespace evictd::proxy {
namespace {

std::string to_string(grpc::string_ref text) { return {text.data(), text.size()}; }

/// Both ends of one call. gRPC's threads run it: an end's reactions may come at the same time as the other's.
///
/// It is the server's reactor, and lives until gRPC says that the server's end is done. That comes after Finish(),
/// which is called once, when nothing else can happen: by the runtime's last reaction, or once the agent has heard of
/// that, or, where the runtime was never called, by the answer to the question.
///
/// gRPC keeps the runtime's end open while it is held: one hold for the requests and one for the responses, since what
/// is begun on it comes from the client's reactions. Each goes when nothing more will be begun there.
class ForwardedCall final : public grpc::ServerGenericBidiReactor {
 public:
  ForwardedCall(grpc::GenericCallbackServerContext& client, grpc::GenericStub& runtime, Gate& gate,
                RunningCalls::Ticket ticket)
      : ticket_(std::move(ticket)), client_(client), runtime_(runtime), runtime_end_(*this) {
    if (const auto method = gated_method(client.method())) question_.emplace(gate, *method);
  }

  void begin() {
    if (!question_) call_runtime();
    StartRead(&request_);
  }

 private:
  /// The runtime's end, by the names that gRPC has for its reactions.
  class RuntimeEnd final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
   public:
    explicit RuntimeEnd(ForwardedCall& call) : call_(call) {}
    void OnReadInitialMetadataDone(bool ok) override { call_.runtime_answers(ok); }
    void OnReadDone(bool ok) override { call_.response_read(ok); }
    void OnWriteDone(bool ok) override { call_.request_taken(ok); }
    void OnDone(const grpc::Status& status) override { call_.runtime_done(status); }

   private:
    ForwardedCall& call_;
  };

  enum class Requests : std::uint8_t {
    Reading,  ///< the client's next message is waited for
    Passing,  ///< one is being written to the runtime
    Over,     ///< the client has no more, or the runtime wants none
  };

  // The client's end.
  void OnReadDone(bool ok) override {
    if (question_ && !asked_) {
      asked_ = true;
      if (ok) {
        question_->ask(request_, [this](const grpc::Status& verdict) { answered(verdict); });
        return;
      }
      call_runtime();  // without a message there is nothing to ask about; the runtime says what it thinks of that
    }
    pass_request(ok);
  }
  void OnWriteDone(bool ok) override {
    response_.Clear();
    if (ok) {
      runtime_end_.StartRead(&response_);
      return;
    }
    context_.TryCancel();
    responses_over();
  }
  void OnCancel() override {
    if (question_) question_->cancel();
    context_.TryCancel();
  }
  void OnDone() override { delete this; }

  /// Within OnReadDone where nothing is asked about the request, otherwise in no reaction of either end: once the call
  /// is started, or finished, this may be gone.
  void answered(const grpc::Status& verdict) {
    if (!verdict.ok()) {
      Finish(verdict);
      return;
    }
    if (const auto additions = question_->additions(); !additions.empty()) {
      auto request = with_additions(additions, request_);
      if (!request) {
        Finish({grpc::StatusCode::INTERNAL, "the container's devices cannot be added to the request"});
        return;
      }
      request_ = *std::move(request);
    }
    prepare_runtime_end();
    requests_ = Requests::Passing;
    runtime_end_.StartWrite(&request_);
    runtime_end_.StartCall();
  }

  void call_runtime() {
    prepare_runtime_end();
    runtime_end_.StartCall();
  }

  void prepare_runtime_end() {
    for (const auto& [key, value] : client_.client_metadata())
      if (passes(key, value)) context_.AddMetadata(to_string(key), to_string(value));
    context_.set_deadline(client_.raw_deadline());
    runtime_.PrepareBidiStreamingCall(&context_, client_.method(), {}, &runtime_end_);
    runtime_end_.AddMultipleHolds(2);
  }

  /// The client's message is read, or its half-close: one of them after the other.
  void pass_request(bool is_message) {
    const std::lock_guard lock(mutex_);
    if (requests_ == Requests::Over) return;
    if (is_message) {
      requests_ = Requests::Passing;
      runtime_end_.StartWrite(&request_);
    } else {
      runtime_end_.StartWritesDone();
      requests_over();
    }
  }

  void request_taken(bool ok) {
    const std::lock_guard lock(mutex_);
    request_.Clear();
    if (!ok || runtime_has_ended_) {
      requests_over();
    } else {
      requests_ = Requests::Reading;
      StartRead(&request_);
    }
  }

  /// With the lock held.
  void requests_over() {
    requests_ = Requests::Over;
    runtime_end_.RemoveHold();
  }

  void runtime_answers(bool with_metadata) {
    // Without any, the status alone is on its way.
    if (with_metadata) {
      for (const auto& [key, value] : context_.GetServerInitialMetadata())
        if (passes(key, value)) client_.AddInitialMetadata(to_string(key), to_string(value));
      StartSendInitialMetadata();
    }
    runtime_end_.StartRead(&response_);
  }

  void response_read(bool ok) {
    if (ok)
      StartWrite(&response_);
    else
      responses_over();
  }

  /// The runtime has answered and takes no further requests, or the client has left.
  void responses_over() {
    const std::lock_guard lock(mutex_);
    runtime_has_ended_ = true;
    if (requests_ == Requests::Reading) requests_over();
    runtime_end_.RemoveHold();
  }

  void runtime_done(const grpc::Status& status) {
    for (const auto& [key, value] : context_.GetServerTrailingMetadata())
      if (passes(key, value)) client_.AddTrailingMetadata(to_string(key), to_string(value));
    auto finish = [this, status] { Finish(status); };  // the last: it may destroy this on another thread
    if (question_)
      question_->runtime_ended(status, std::move(finish));
    else
      finish();
  }

  const RunningCalls::Ticket ticket_;  ///< given back last
  grpc::GenericCallbackServerContext& client_;
  grpc::GenericStub& runtime_;
  std::optional<AdmissionQuestion> question_;
  bool asked_ = false;
  grpc::ClientContext context_;
  RuntimeEnd runtime_end_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_;

  std::mutex mutex_;
  Requests requests_ = Requests::Reading;
  bool runtime_has_ended_ = false;
};

}  // namespace

grpc::ServerGenericBidiReactor* forward(grpc::GenericCallbackServerContext& client, grpc::GenericStub& runtime,
                                        Gate& gate, RunningCalls::Ticket ticket) {
  auto* call = new ForwardedCall(client, runtime, gate, std::move(ticket));
  call->begin();
  return call;
}

}  // namespace evictd::proxy
