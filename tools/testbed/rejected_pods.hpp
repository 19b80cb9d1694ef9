#pragma once
#include <evictd.grpc.pb.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "testbed/agent.hpp"
#include "testbed/testbed.hpp"

namespace testbed {

/// Makes events, as many as one likes: asks the agent to take pods that no node takes by default. Each is an event of
/// kind ADMISSION_REJECTED, and nothing else comes of it.
class RejectedPods {
 public:
  RejectedPods(const Testbed& testbed, const Agent& agent);

  /// At most 256 pods NAMESPACE/NAME, one event each. The error is the agent's: it is gone, or has not listed its pods.
  [[nodiscard]] grpc::Status reject(int count, const std::string& name_space, const std::string& name);
  /// The same where it has to succeed; waits until the agent knows its pods.
  void make_events(int count, const std::string& name_space = "default", const std::string& name = "nobody");

 private:
  std::unique_ptr<evictd::v1::EvictionService::Stub> stub_;
};

}  // namespace testbed
