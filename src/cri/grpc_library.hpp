#pragma once
#include <grpcpp/channel.h>

#include <memory>

namespace evictd::cri {

/// gRPC, set up so that its threads let an idle machine sleep. To be made before anything of gRPC, on the thread that
/// makes it all, and to be destroyed after it.
///
/// gRPC 1.51 has two threads for timers: of deadlines, handshakes and keepalive, and of the next attempts to connect.
/// Each has two lists for a processor, 32 at most, and looks at each of them once a second, whether there is a timer or
/// not. Here a look may come up to 4 s late where a processor sleeps, and so may what a timer is for. A look that comes
/// late is one at all lists, which are looked at together from then on.
///
/// Nothing of evictd waits for these timers: the deadlines of its calls are the reactor's (call.hpp), and it asks for
/// attempts to connect by itself (channel.cpp). The slack holds for gRPC's own threads alone. It is not for
/// `evictd cri-proxy`, whose deadlines are gRPC's.
class GrpcLibrary {
 public:
  GrpcLibrary();

 private:
  std::shared_ptr<grpc::Channel> channel_;  // to nobody: has gRPC keep the threads that it begins for a channel
};

}  // namespace evictd::cri
