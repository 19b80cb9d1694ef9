#include "testbed/channel.hpp"

#include <chrono>

#include "testbed/wait.hpp"

namespace testbed {

std::shared_ptr<grpc::Channel> channel_to(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");  // newer gRPC derives one that some servers refuse
  for (const auto* backoff :
       {GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, GRPC_ARG_MAX_RECONNECT_BACKOFF_MS})
    arguments.SetInt(backoff, 100);
  arguments.SetMaxReceiveMessageSize(16 << 20);  // as containerd's own limit for sending
  // Without a pool of its own a new channel would share the connection, and the back-off, of another one to the same
  // socket.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

std::unique_ptr<evictd::v1::EvictionService::Stub> agent_stub(const std::string& address) {
  return evictd::v1::EvictionService::NewStub(channel_to(address));
}

void prepare(grpc::ClientContext& context) {
  context.set_wait_for_ready(true);
  context.set_deadline(std::chrono::system_clock::now() + patient(std::chrono::minutes{1}));
}

}  // namespace testbed
