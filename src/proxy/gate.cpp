#include "proxy/gate.hpp"

#include <api.pb.h>
#include <fmt/format.h>
#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <utility>

#include "proxy/device_additions.hpp"
#include "proxy/local_channel.hpp"
#include "proxy/pressure_additions.hpp"

namespace evictd::proxy {
namespace {

namespace cri_v1 = ::runtime::v1;

grpc::ChannelArguments agent_arguments() {
  auto arguments = local_channel_arguments();
  // While it backs off every pod is undecided. A restarted agent is found soon: only this socket is tried.
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 250);
  // What device plugins say of a pod's containers is in the answer: 128 KiB of each plugin for each container.
  arguments.SetMaxReceiveMessageSize(16 << 20);
  return arguments;
}

std::string consequence(Undecided undecided) {
  return undecided == Undecided::Admit ? "pods start without its leave" : "no pod starts";
}

/// What containerd 1.6 and evictd do not know of the message stays in it.
template <class Message>
bool parse(grpc::ByteBuffer& bytes, Message& message) {
  return grpc::GenericDeserialize<grpc::ProtoBufferReader, Message>(&bytes, &message).ok();
}

/// Tells the agent of a refusal.
class Telling final : private grpc::ClientUnaryReactor {
 public:
  Telling(v1::AdmitRequest admitted, std::chrono::milliseconds timeout, std::move_only_function<void()> told)
      : request_(std::move(admitted)), told_(std::move(told)) {
    request_.set_operation(v1::AdmitRequest::RESIZE_REFUSED);
    context_.set_deadline(
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(timeout.count(), GPR_TIMESPAN)));
  }

  /// Once. When it returns, this may be gone, and the gate too.
  void start(v1::EvictionService::StubInterface& agent) {
    agent.async()->Admit(&context_, &request_, &response_, this);
    StartCall();
  }

 private:
  /// Once it is told the gate may go. The context, which holds the connection as well, goes before: whoever lets go of
  /// the last connection awaits gRPC's threads, of which this is one.
  void OnDone(const grpc::Status&) override {
    auto told = std::move(told_);
    delete this;
    told();
  }

  grpc::ClientContext context_;
  v1::AdmitRequest request_;
  v1::AdmitResponse response_;
  std::move_only_function<void()> told_;
};

}  // namespace

Gate::Gate(GateOptions options)
    : options_(std::move(options)),
      channel_(grpc::CreateCustomChannel("unix:" + options_.agent_socket, grpc::InsecureChannelCredentials(),
                                         agent_arguments())),
      agent_(v1::EvictionService::NewStub(channel_)),
      outage_(consequence(options_.undecided)) {}

void Gate::warm_up() { channel_->GetState(true); }

grpc::Status Gate::decide(const grpc::Status& status, const v1::AdmitResponse& response) {
  if (!status.ok()) {
    // gRPC's own timer for the next attempt stands still while the wall clock is set back.
    grpc::experimental::ChannelResetConnectionBackoff(channel_.get());
    return undecided(fmt::format("{}: {} (gRPC code {})", options_.agent_socket, status.error_message(),
                                 static_cast<int>(status.error_code())));
  }
  if (const auto line = outage_.decided()) options_.warn(*line);
  if (response.admitted()) return grpc::Status::OK;
  return {grpc::StatusCode::FAILED_PRECONDITION, fmt::format("{}: {}", response.reason(), response.message())};
}

void Gate::refused(v1::AdmitRequest admitted, std::move_only_function<void()> told) {
  // It belongs to gRPC once it has started. An agent that cannot be told forgets the resize with the pod.
  (new Telling(std::move(admitted), timeout(), std::move(told)))->start(*agent_);
}

grpc::Status Gate::undecided(const std::string& why) {
  if (const auto line = outage_.undecided(why, std::chrono::steady_clock::now())) options_.warn(*line);
  if (options_.undecided == Undecided::Admit) return grpc::Status::OK;
  return {grpc::StatusCode::UNAVAILABLE,
          fmt::format("the evictd agent does not decide on this, and criProxy.undecided is reject ({})", why)};
}

void AdmissionQuestion::ask(grpc::ByteBuffer message, std::move_only_function<void(grpc::Status)> answer) {
  if (const auto subject = read(message); subject != Subject::Given) {
    answer(subject == Subject::Nothing ? grpc::Status::OK : gate_.undecided("the request cannot be read"));
    return;
  }
  answer_ = std::move(answer);
  request_.set_reserve(true);
  gate_.agent().async()->Admit(&call_->context, &request_, &response_, this);
  silence_.Set(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(gate_.timeout().count(), GPR_TIMESPAN)),
               // It may be some time until an alarm that was cancelled goes, and until then it holds no connection.
               [weak = std::weak_ptr(call_)](bool expired) {
                 const auto call = expired ? weak.lock() : nullptr;
                 if (call == nullptr) return;
                 call->late = true;
                 call->context.TryCancel();
               });
  StartCall();
}

void AdmissionQuestion::OnReadInitialMetadataDone(bool ok) {
  if (ok) silence_.Cancel();
}

void AdmissionQuestion::OnDone(const grpc::Status& status) {
  silence_.Cancel();
  auto answer = std::move(answer_);
  answer(verdict(status));
}

void AdmissionQuestion::runtime_ended(const grpc::Status& status, std::move_only_function<void()> told) {
  using enum grpc::StatusCode;
  const auto code = status.error_code();
  const bool may_be_done = code == OK || code == CANCELLED || code == DEADLINE_EXCEEDED || code == UNAVAILABLE;
  if (method_ != GatedMethod::UpdateContainerResources || !response_.admitted() || may_be_done) return told();
  gate_.refused(std::move(request_), std::move(told));
}

void AdmissionQuestion::cancel() {
  cancelled_ = true;
  call_->context.TryCancel();
}

AdmissionQuestion::Subject AdmissionQuestion::read(grpc::ByteBuffer& message) {
  if (method_ == GatedMethod::UpdateContainerResources) return read_update(message);
  auto& subject = *request_.mutable_runtime();
  bool is_read = false;
  if (method_ == GatedMethod::RunPodSandbox) {
    cri_v1::RunPodSandboxRequest sandbox;
    is_read = parse(message, sandbox) && sandbox.config().SerializeToString(subject.mutable_sandbox_config());
  } else {
    cri_v1::CreateContainerRequest container;
    is_read = parse(message, container) &&
              container.sandbox_config().SerializeToString(subject.mutable_sandbox_config()) &&
              container.config().SerializeToString(subject.mutable_container_config());
    container_ = container.config().metadata().name();
    pressure_ = pressure_additions(container.sandbox_config(), gate_.pressure_socket());
  }
  return is_read ? Subject::Given : Subject::Unreadable;
}

/// Whether the pod grows by it the agent knows, which knows the pod.
AdmissionQuestion::Subject AdmissionQuestion::read_update(grpc::ByteBuffer& message) {
  cri_v1::UpdateContainerResourcesRequest update;
  if (!parse(message, update)) return Subject::Unreadable;
  const auto& given = update.linux();
  const bool may_grow = given.cpu_shares() > 0 || given.cpu_quota() > 0 || given.memory_limit_in_bytes() > 0;
  if (!may_grow || update.container_id().empty()) return Subject::Nothing;
  request_.set_operation(v1::AdmitRequest::RESIZE);
  request_.mutable_runtime()->set_container_id(update.container_id());
  return given.SerializeToString(request_.mutable_runtime()->mutable_linux_resources()) ? Subject::Given
                                                                                        : Subject::Unreadable;
}

/// The answers about a sandbox, and about an update of a container that is there, tell of devices as well. The pressure
/// socket takes no answer: a container that passes undecided has it for its life.
std::string AdmissionQuestion::additions() const {
  if (method_ != GatedMethod::CreateContainer) return {};
  // One after the other, messages are merged.
  return (response_.admitted() ? device_additions(response_, container_) : std::string{}) + pressure_;
}

grpc::Status AdmissionQuestion::verdict(const grpc::Status& status) {
  // The client's own doing says nothing about the agent.
  if (cancelled_) return grpc::Status::CANCELLED;
  if (call_->late && status.error_code() == grpc::StatusCode::CANCELLED)
    return gate_.decide({grpc::StatusCode::DEADLINE_EXCEEDED, "it does not answer"}, response_);
  return gate_.decide(status, response_);
}

}  // namespace evictd::proxy
