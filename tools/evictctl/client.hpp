#pragma once
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/status.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "core/error.hpp"
#include "evictd.grpc.pb.h"

namespace evictd::ctl {

struct Context;

/// What a command is going to do.
enum class Access : std::uint8_t { Look, Change };

/// An agent that is not stuck has answered a question by then.
constexpr std::chrono::seconds answer_within{5};

/// A call with one answer: `&v1::EvictionService::Stub::GetNodeStatus`.
template <class Request, class Response>
using Method = grpc::Status (v1::EvictionService::Stub::*)(grpc::ClientContext*, const Request&, Response*);

/// A connection to the agent.
class Client {
 public:
  /// Where --address says. A change goes to the administrators' socket beside it, admin.sock, if there is one. Looks
  /// whether anybody answers there, since gRPC would only say that it is unavailable. A file that cannot be read is bad
  /// input.
  [[nodiscard]] static Result<Client> connect(Context& context, Access access = Access::Look);
  [[nodiscard]] v1::EvictionService::Stub& evictions() const { return *evictions_; }

  /// For the calls of other services.
  [[nodiscard]] const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

  /// Makes a call; the error is refused().
  template <class Request, class Response>
  [[nodiscard]] Result<Response> call(Context& context, Method<Request, Response> method, const Request& request,
                                      std::chrono::milliseconds within) const {
    grpc::ClientContext call;
    call.set_deadline(std::chrono::system_clock::now() + within);
    Response response;
    const auto status = (evictions_.get()->*method)(&call, request, &response);
    if (status.ok()) return response;
    return std::unexpected(refused(context, status));
  }

  /// A call that failed, for the operator.
  [[nodiscard]] Error explain(const grpc::Status& status) const;
  /// The same of a command's call: that the agent does not take what it was given is bad input.
  [[nodiscard]] Error refused(Context& context, const grpc::Status& status) const;

 private:
  Client(std::string where, const std::string& target, const std::shared_ptr<grpc::ChannelCredentials>& credentials);

  std::string where_;
  bool is_tls_ = false;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::EvictionService::Stub> evictions_;
};

}  // namespace evictd::ctl
