#pragma once
#include <chrono>
#include <memory>
#include <system_error>
#include <utility>

#include "async/deadline_thread.hpp"

namespace evictd::api {

/// Destroys what may be the last gRPC object of the process, as this ends.
///
/// gRPC ends with the last of its objects. There 1.51 waits for its poller of full sockets (tcp_posix.cc, run_poller),
/// which looks up every 10 s: so long a client that does not read what it asked for would hold up the end. Where it
/// does, gRPC is left to itself (async::left_behind).
template <class T>
void end_grpc(std::unique_ptr<T> last) {
  constexpr std::chrono::seconds usually_enough{1};
  try {
    async::within("gRPC, for a client that does not read", usually_enough, [last = std::move(last)]() mutable {
      last.reset();
      return true;
    });
  } catch (const std::system_error&) {
    // There are no threads: it is destroyed already, whatever time that took.
  }
}

}  // namespace evictd::api
