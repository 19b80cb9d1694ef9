#pragma once
#include <grpcpp/channel.h>
#include <grpcpp/support/status.h>

#include <memory>
#include <string>

#include "core/error.hpp"
#include "evictd.grpc.pb.h"
#include "health.grpc.pb.h"

namespace evictd::ctl {

/// The socket that an address names: "unix:///run/evictd/evictd.sock", "unix:/run/…" or the bare path.
[[nodiscard]] Result<std::string> socket_of(const std::string& address);

/// A connection to the agent that listens on a socket.
class Client {
 public:
  /// Looks whether anybody answers there, since gRPC would only say that it is unavailable.
  [[nodiscard]] static Result<Client> connect(const std::string& address);

  [[nodiscard]] v1::EvictionService::Stub& evictions() const { return *evictions_; }

  /// What every gRPC server may say of itself.
  [[nodiscard]] grpc::health::v1::Health::Stub& health() const { return *health_; }

  /// A call that failed, for the operator.
  [[nodiscard]] Error explain(const grpc::Status& status) const;

 private:
  explicit Client(std::string socket);

  std::string socket_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::EvictionService::Stub> evictions_;
  std::unique_ptr<grpc::health::v1::Health::Stub> health_;
};

}  // namespace evictd::ctl
