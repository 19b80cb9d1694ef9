#include "testbed/cri_channel.hpp"

#include <fmt/format.h>

#include <chrono>
#include <string>

#include "testbed/failure.hpp"
#include "testbed/wait.hpp"

namespace testbed {

std::shared_ptr<grpc::Channel> cri_channel(const std::filesystem::path& socket) {
  grpc::ChannelArguments arguments;
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");  // newer gRPC derives one that some servers refuse
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 100);
  arguments.SetMaxReceiveMessageSize(16 << 20);  // as containerd's own limit for sending
  // Without a pool of its own a new channel would share the connection, and the back-off, of another one to the same
  // socket.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel("unix:" + socket.native(), grpc::InsecureChannelCredentials(), arguments);
}

void prepare(grpc::ClientContext& context) {
  context.set_wait_for_ready(true);
  context.set_deadline(std::chrono::system_clock::now() + patient(std::chrono::minutes{1}));
}

void expect_ok(const grpc::Status& status, std::string_view request) {
  if (!status.ok()) fail(fmt::format("CRI {}: {}", request, status.error_message()));
}

}  // namespace testbed
