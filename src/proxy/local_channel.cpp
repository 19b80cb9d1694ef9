#include "proxy/local_channel.hpp"

namespace evictd::proxy {

grpc::ChannelArguments local_channel_arguments() {
  grpc::ChannelArguments arguments;
  // Newer gRPC makes the :authority of a unix socket from its path, %-encoded, which Go servers refuse (grpc #38142).
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  // The default back-off of 1 s to 2 min is meant for networks. A local socket costs nothing to try.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // In spite of its name this is how long a connection may take until the server's first HTTP/2 frame. On a node that
  // thrashes containerd needs its time; each call has a deadline of its own.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000);
  // Channels to one address would otherwise share a connection, and with it its back-off.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // Measuring a local socket's bandwidth takes a ping with every message, and wakes two threads for each.
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  return arguments;
}

}  // namespace evictd::proxy
