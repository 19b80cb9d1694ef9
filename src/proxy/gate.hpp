#pragma once
#include <evictd.grpc.pb.h>
#include <grpcpp/alarm.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/client_callback.h>
#include <grpcpp/support/status.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "proxy/agent_outage.hpp"
#include "proxy/gated_method.hpp"
#include "proxy/options.hpp"

namespace evictd::proxy {

/// Where it is decided whether a call that starts something, or has it grow, may pass: the agent's Admit, and what
/// holds without its answer. Shared by all calls; any thread.
class Gate {
 public:
  explicit Gate(GateOptions options);

  /// Begins to connect to the agent, so that the first pod need not wait for it.
  void warm_up();

  [[nodiscard]] v1::EvictionService::StubInterface& agent() { return *agent_; }
  [[nodiscard]] std::chrono::milliseconds timeout() const { return options_.timeout; }
  [[nodiscard]] const std::string& pressure_socket() const { return options_.pressure_socket; }

  /// What becomes of the call that the agent answered so. OK: it may pass.
  [[nodiscard]] grpc::Status decide(const grpc::Status& status, const v1::AdmitResponse& response);
  /// Tells the agent that the runtime has refused what it admitted by this request. `told` is called when it has heard
  /// of it, or has not within the timeout: what the client asks next is decided after that. On any thread.
  void refused(v1::AdmitRequest admitted, std::move_only_function<void()> told);
  /// Where the agent cannot be asked, or does not say.
  [[nodiscard]] grpc::Status undecided(const std::string& why);

 private:
  GateOptions options_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::EvictionService::StubInterface> agent_;
  AgentOutage outage_;
};

/// The question about one call. It must live until it is answered.
///
/// The agent has GateOptions::timeout to say something. Where pods have to make room first, device plugins are asked,
/// or what is given is written, that is the initial metadata: the answer is waited for from then on until the client
/// does not want it any more.
class AdmissionQuestion final : private grpc::ClientUnaryReactor {
 public:
  AdmissionQuestion(Gate& gate, GatedMethod method) : gate_(gate), method_(method) {}

  /// Once. `answer` gets OK where the call may pass, otherwise how it ends; once, on any thread, perhaps at once. It
  /// may destroy this. The message is only looked at: FAILED_PRECONDITION with "REASON: MESSAGE" is the agent's no,
  /// UNAVAILABLE says that there was none and that criProxy.undecided is `reject`. What cannot make a pod grow, such as
  /// a container's cpuset, passes without a question.
  void ask(grpc::ByteBuffer message, std::move_only_function<void(grpc::Status)> answer);

  /// What the container is to be given once it may pass: for its devices (device_additions.hpp), and so that it learns
  /// when memory is short (pressure_additions.hpp).
  [[nodiscard]] std::string additions() const;

  /// How the runtime has ended the call that passed. `told` is called once, on any thread or at once, when the agent
  /// has heard of it where it has to: of an update that the runtime has refused it reserves nothing any more. Of one
  /// that the runtime may still carry out it hears nothing.
  void runtime_ended(const grpc::Status& status, std::move_only_function<void()> told);

  /// The answer is not awaited any more; it comes all the same, as CANCELLED. Before ask() as well; any thread.
  void cancel();

 private:
  /// What the alarm touches, which may go off when the question is gone.
  struct Call {
    grpc::ClientContext context;
    std::atomic<bool> late = false;
  };

  void OnReadInitialMetadataDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  enum class Subject : std::uint8_t { Unreadable, Nothing, Given };
  /// Writes what is asked about into the request.
  [[nodiscard]] Subject read(grpc::ByteBuffer& message);
  [[nodiscard]] Subject read_update(grpc::ByteBuffer& message);
  [[nodiscard]] grpc::Status verdict(const grpc::Status& status);

  Gate& gate_;
  GatedMethod method_;
  std::atomic<bool> cancelled_ = false;
  std::move_only_function<void(grpc::Status)> answer_;
  v1::AdmitRequest request_;
  v1::AdmitResponse response_;
  std::string container_;  ///< that is to be made
  std::string pressure_;   ///< what it is given to learn that memory is short
  std::shared_ptr<Call> call_ = std::make_shared<Call>();
  grpc::Alarm silence_;
};

}  // namespace evictd::proxy
