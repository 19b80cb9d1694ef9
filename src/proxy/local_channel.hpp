#pragma once
#include <grpcpp/support/channel_arguments.h>

namespace evictd::proxy {

/// What a gRPC channel to a server on this machine's unix sockets needs beside its limits. Channels so made share no
/// connection with others.
[[nodiscard]] grpc::ChannelArguments local_channel_arguments();

}  // namespace evictd::proxy
