#pragma once
#include <chrono>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "async/deadline_thread.hpp"
#include "rpc/server/open_socket.hpp"

namespace grpc {
class Server;
}  // namespace grpc

namespace evictd::rpc {

/// Shutdown() and Wait(). By the deadline every call has ended, but gRPC goes on waiting for a client that does not
/// read the last of what it asked for (server_cc.cc, Server::ShutdownInternal): whoever of the clients is connected a
/// moment later is cut off.
void shut_down(grpc::Server& server, const OpenSockets& clients, std::chrono::system_clock::time_point deadline);

/// Destroys what may be the last gRPC object of the process, as this ends.
///
/// gRPC ends with the last of its objects. There 1.51 waits for its poller of full sockets (tcp_posix.cc, run_poller),
/// which looks up every 10 s: so long a client that does not read what it asked for would hold up the end. Where it
/// does, gRPC is left to itself (async::left_behind), where `what` says what holds it up.
template <class T>
void end_grpc(std::unique_ptr<T> last, std::string what = "gRPC, for a client that does not read") {
  constexpr std::chrono::seconds usually_enough{1};
  try {
    async::within(std::move(what), usually_enough, [last = std::move(last)]() mutable {
      last.reset();
      return true;
    });
  } catch (const std::system_error&) {
    // There are no threads: it is destroyed already, whatever time that took.
  }
}

}  // namespace evictd::rpc
