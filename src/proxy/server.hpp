#pragma once
#include <chrono>
#include <memory>

#include "core/error.hpp"
#include "proxy/options.hpp"

namespace evictd::proxy {

/// A socket that speaks to clients as the container runtime behind it does: whatever they call is passed on, and what
/// starts a pod or a container waits for the agent's leave first.
///
/// gRPC's own threads do the work; no reactor is needed. A proxy serves nothing itself, also not health or reflection,
/// for those are the runtime's to answer.
class Server {
 public:
  explicit Server(ServerOptions options);
  ~Server();  ///< shuts down, without patience, unless shutdown() was called
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Listens, with mode 0600; a socket left by a dead server is replaced, a living one is an error. The runtime need
  /// not be there: while it is away, calls end as UNAVAILABLE.
  [[nodiscard]] Result<void> start();

  /// Refuses new calls with UNAVAILABLE and lets those under way end by themselves for so long; what is left then is
  /// cancelled. At the end the socket is removed. Blocks meanwhile. A second call does nothing.
  void shutdown(std::chrono::milliseconds patience);

 private:
  struct Parts;  // gRPC's headers are heavy: they stay in server.cpp
  std::unique_ptr<Parts> parts_;
};

}  // namespace evictd::proxy
