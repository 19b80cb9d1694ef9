#include "cri/grpc_library.hpp"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <chrono>

#include "async/timer_slack.hpp"

namespace evictd::cri {

GrpcLibrary::GrpcLibrary() {
  const async::TimerSlack late{std::chrono::seconds{4}};
  // Begins a thread for each kind of timers, of which each begins all others of its kind. It is never connected.
  channel_ = grpc::CreateChannel("unix:/nonexistent", grpc::InsecureChannelCredentials());
}

}  // namespace evictd::cri
