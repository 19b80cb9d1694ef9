#pragma once
#include <evictd.grpc.pb.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string_view>
#include <vector>

#include "testbed/agent.hpp"
#include "testbed/wait.hpp"

namespace integration {

/// All that the history knows, that of earlier agents as well.
inline std::vector<testbed::Event> history(const testbed::Agent& agent) {
  const auto channel = grpc::CreateChannel(agent.address(), grpc::InsecureChannelCredentials());
  const auto stub = evictd::v1::EvictionService::NewStub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + testbed::patient(std::chrono::seconds{30}));
  context.set_authority("localhost");
  evictd::v1::StreamEventsRequest request;
  request.set_after_sequence(0);
  request.set_follow(false);
  const auto reader = stub->StreamEvents(&context, request);
  std::vector<testbed::Event> events;
  for (testbed::Event event; reader->Read(&event);) events.push_back(event);
  return events;
}

inline std::ptrdiff_t count(const std::vector<testbed::Event>& events, testbed::Event::Kind kind,
                            std::string_view pod) {
  return std::ranges::count_if(
      events, [&](const testbed::Event& event) { return event.kind() == kind && testbed::key(event.pod()) == pod; });
}

}  // namespace integration
