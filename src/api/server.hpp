#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "api/handlers.hpp"
#include "api/tls.hpp"
#include "core/error.hpp"
#include "os/tcp_address.hpp"

namespace evictd::events {
class EventLog;
}

namespace evictd::api {

/// `api.tcp`
struct TcpOptions {
  os::TcpAddress address;
  TlsOptions tls;
};

struct ServerOptions {
  /// evictd.sock, for those who look: at most 107 bytes; its directory must exist. Empty: there is none.
  std::string socket = "/run/evictd/evictd.sock";
  /// admin.sock, for those who change something: the same.
  std::string admin_socket{};
  /// api.group: a name or a number; empty: evictd, if there is such a group, or the process's own.
  std::string group{};
  std::optional<TcpOptions> tcp{};
  /// A subscriber that leaves an event unread for longer is cut off: it is gone, and holds memory of gRPC's until then.
  std::chrono::milliseconds write_timeout{5000};
  /// api.subscribers: event streams at the same time; one more gets RESOURCE_EXHAUSTED. Administrators have room for 16
  /// beside them.
  std::size_t subscribers = 1024;
  /// Connections at the same time, on each socket; one more is closed. 0: enough for all subscribers.
  std::size_t connections = 0;
  /// How long a connection may take over its greeting. One that has greeted may stay silent.
  std::chrono::milliseconds patience{5000};
  /// How long a client may take nothing while its socket is full. Then it is cut off, within another half of `rest`.
  std::chrono::milliseconds unread{30'000};
  /// After the last connection of a way in: then its grpc::Server goes, until the next one comes.
  std::chrono::milliseconds rest{60'000};
};

/// The gRPC API: EvictionService, health and reflection on each way in, which also says what a caller may do there.
///
/// Each way in is a grpc::Server of its own (StandbyEndpoint), so that no caller's role hangs on what gRPC knows of its
/// peer, which on a unix socket is nothing (grpc#15511): the modes of the sockets and the certificates decide. They
/// share the log, the streams and the open calls.
///
/// Made, started, shut down and destroyed on the reactor's thread, which the event log names; the log and the reactor
/// must outlive it. Each way in on which somebody is connected has a thread that takes what gRPC hands it and posts it
/// there.
class Server {
 public:
  Server(ServerOptions options, events::EventLog& log, const Handlers& handlers);
  /// Shuts down, with the default timeout, unless shutdown() was called.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Listens; a socket left by a dead server is replaced, a living one is an error. Health says NOT_SERVING until told
  /// otherwise.
  [[nodiscard]] Result<void> start();

  /// What the health service says, for "" and for evictd.v1.EvictionService.
  void set_serving(bool serving);

  /// Says NOT_SERVING, ends all calls with UNAVAILABLE and removes the sockets. What is not ours to end (a health
  /// watch, a peer that takes nothing) is cut off after `timeout`. Blocks for that long, and little more for each way
  /// in (end_grpc); needs no turn of the reactor. A second call does nothing.
  void shutdown(std::chrono::milliseconds timeout = std::chrono::milliseconds(500));

 private:
  struct Parts;  // gRPC's headers are heavy: they stay in server.cpp
  std::unique_ptr<Parts> parts_;
};

}  // namespace evictd::api
