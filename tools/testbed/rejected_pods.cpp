#include "testbed/rejected_pods.hpp"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>

#include "testbed/channel.hpp"
#include "testbed/failure.hpp"
#include "testbed/wait.hpp"

using namespace std::chrono_literals;
namespace v1 = evictd::v1;

namespace testbed {

namespace {

/// Reservations are for administrators.
std::string address_for_changes(const Testbed& testbed, const Agent& agent) {
  const auto socket = testbed.directory() / "admin.sock";
  return std::filesystem::exists(socket) ? "unix:" + socket.native() : agent.address();
}

}  // namespace

RejectedPods::RejectedPods(const Testbed& testbed, const Agent& agent)
    : stub_{agent_stub(address_for_changes(testbed, agent))} {}

grpc::Status RejectedPods::reject(int count, const std::string& name_space, const std::string& name) {
  v1::AdmitBatchRequest request;
  request.set_reserve(true);
  // One pod many times, which is read in little time.
  auto pods = fmt::format(
      "{{kind: List, items: [&pod {{apiVersion: v1, kind: Pod, metadata: {{name: {}, namespace: {}}}, spec: {{"
      "containers: [{{name: main}}], securityContext: {{sysctls: [{{name: kernel.msgmax, value: '1'}}]}}}}}}",
      name, name_space);
  for (int i = 1; i < count; ++i) pods += ", *pod ";
  request.add_pods(pods + "]}");
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + patient(20s));
  v1::AdmitBatchResponse response;
  const auto status = stub_->AdmitBatch(&context, request, &response);
  for (const auto& answer : response.answers())
    if (answer.admitted()) fail("a pod was admitted that must not be: " + answer.ShortDebugString());
  return status;
}

void RejectedPods::make_events(int count, const std::string& name_space, const std::string& name) {
  wait_until("the agent decides on pods", 60s, [&] { return reject(count, name_space, name).ok(); });
}

}  // namespace testbed
