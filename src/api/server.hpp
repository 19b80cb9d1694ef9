#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "api/caller.hpp"
#include "api/handlers.hpp"
#include "core/error.hpp"

namespace grpc {
class Service;
}

namespace evictd::api {

class EventLog;

struct ServerOptions {
  /// api.socket: at most 107 bytes; its directory must exist.
  std::string socket = "/run/evictd/evictd.sock";
  /// api.group: a name or a number; empty: the process's own.
  std::string group{};
  /// gRPC cannot ask a peer who it is (grpc#15511), so the mode decides who may call.
  mode_t mode = 0660;
  /// api.writeTimeout: a subscriber that leaves an event unread for longer is cut off.
  std::chrono::milliseconds write_timeout{5000};
  /// Event streams at the same time; one more gets RESOURCE_EXHAUSTED.
  std::size_t subscribers = 1024;
  /// Given one line for the log when a subscriber is cut off. On the reactor; may be empty.
  std::function<void(const std::string&)> warn{};
};

/// The gRPC server on a unix socket: EvictionService, health, reflection, and what else is added.
///
/// Made, started, shut down and destroyed on the reactor's thread, which the event log names; the log and the reactor
/// must outlive it. gRPC's own threads only copy what they are given and post it there.
class Server {
 public:
  Server(ServerOptions options, EventLog& log, Handlers handlers);
  /// Shuts down, with the default timeout, if nobody did.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// One more service, before `start`.
  void add(std::shared_ptr<grpc::Service> service);

  /// Listens; a socket left by a dead server is replaced, a living one is an error. Health says NOT_SERVING until told
  /// otherwise.
  [[nodiscard]] Result<void> start();

  /// What the health service says, for "" and for evictd.v1.EvictionService.
  void set_serving(bool serving);

  /// Says NOT_SERVING, ends all calls with UNAVAILABLE and removes the socket. What is not ours to end (a health watch,
  /// a peer that takes nothing) is cut off after `timeout`. Blocks for that long at most, and needs no turn of the
  /// reactor. A second call does nothing.
  void shutdown(std::chrono::milliseconds timeout = std::chrono::milliseconds(500));

 private:
  struct Parts;  // gRPC's headers are heavy: they stay in server.cpp
  std::unique_ptr<Parts> parts_;
};

}  // namespace evictd::api
