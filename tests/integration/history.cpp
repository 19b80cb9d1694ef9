#include "history.hpp"

#include <evictd.grpc.pb.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>

#include "testbed/channel.hpp"
#include "testbed/failure.hpp"

namespace integration {

std::vector<testbed::Event> history(const testbed::Agent& agent) {
  const auto stub = testbed::agent_stub(agent.address());
  grpc::ClientContext context;
  testbed::prepare(context);
  evictd::v1::StreamEventsRequest request;
  request.set_after_sequence(0);
  request.set_follow(false);
  const auto reader = stub->StreamEvents(&context, request);
  std::vector<testbed::Event> events;
  for (testbed::Event event; reader->Read(&event);) events.push_back(event);
  if (const auto status = reader->Finish(); !status.ok())
    testbed::fail("the history cannot be read: " + status.error_message());
  return events;
}

std::ptrdiff_t count(const std::vector<testbed::Event>& events, testbed::Event::Kind kind, std::string_view pod) {
  return std::ranges::count_if(
      events, [&](const testbed::Event& event) { return event.kind() == kind && testbed::key(event.pod()) == pod; });
}

}  // namespace integration
