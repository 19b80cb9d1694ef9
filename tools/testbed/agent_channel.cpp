#include "testbed/agent_channel.hpp"

namespace testbed {

std::shared_ptr<grpc::Channel> agent_channel(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  for (const auto* backoff :
       {GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, GRPC_ARG_MAX_RECONNECT_BACKOFF_MS})
    arguments.SetInt(backoff, 100);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

std::unique_ptr<evictd::v1::EvictionService::Stub> agent_stub(const std::string& address) {
  return evictd::v1::EvictionService::NewStub(agent_channel(address));
}

}  // namespace testbed
