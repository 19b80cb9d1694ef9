#include "api/server.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <list>
#include <utility>
#include <vector>

#include "api/endpoint.hpp"
#include "api/eviction_service.hpp"
#include "api/pre_kill_stream.hpp"
#include "api/standby_endpoint.hpp"
#include "api/stream.hpp"
#include "api/user_names.hpp"
#include "os/file_descriptor.hpp"
#include "os/unix_socket.hpp"
#include "rpc/server/acceptor.hpp"
#include "rpc/server/grpc_end.hpp"
#include "rpc/server/open_calls.hpp"
#include "rpc/server/peers.hpp"

namespace evictd::api {
namespace {

/// Beside the subscribers, and for those who only look once.
constexpr std::size_t other_connections = 64;

/// gRPC parses a message before it is known whose it is, and of one that consists of empty parts it makes fifty times
/// as much. The largest that has a use is a text of pods, as evictctl sends it, and evictctl reads 1 MiB.
constexpr std::size_t largest_message = (std::size_t{1} << 20) + (64 << 10);

/// cri-proxy asks about a pod as large as containerd itself would take it, which is 16 MiB.
constexpr std::size_t largest_of_administrators = 17 << 20;

/// A flood of connections on one socket must leave descriptors for containerd and for the files of pods.
std::size_t most_connections(const ServerOptions& options) {
  if (options.connections != 0) return options.connections;
  const auto wanted = options.subscribers + other_connections;
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY) return wanted;
  return std::min(wanted, std::max<std::size_t>(files.rlim_cur / 4, 16));
}

}  // namespace

struct Server::Parts {
  Parts(ServerOptions given, events::EventLog& events, const Handlers& answers)
      : options(std::move(given)),
        log(events),
        handlers(answers),
        calls(std::make_shared<rpc::OpenCalls>()),
        streams(std::make_shared<EventStreams>(
            log, StreamLimits{.write_timeout = options.write_timeout, .subscribers = options.subscribers},
            handlers.status)),
        pre_kills(std::make_shared<PreKillStreams>(log.get_executor(), handlers,
                                                   PreKillLimits{.write_timeout = options.write_timeout})) {}

  Result<void> open_socket(const std::string& key, const std::string& path, Role role);
  Result<void> open_tcp(const TcpOptions& tcp);
  StandbyEndpoint& add_endpoint(Identify identify, std::shared_ptr<grpc::ServerCredentials> credentials,
                                std::size_t most_bytes);

  ServerOptions options;
  events::EventLog& log;
  Handlers handlers;
  std::shared_ptr<rpc::OpenCalls> calls;
  std::shared_ptr<EventStreams> streams;
  std::shared_ptr<PreKillStreams> pre_kills;
  std::list<boost::asio::thread_pool> readers;  // of the texts of pods: one thread for each way in
  rpc::Peers peers;
  UserNames users;
  std::vector<os::ListeningSocket> sockets;
  std::vector<rpc::Listener> listeners;
  std::vector<std::shared_ptr<Answers>> answers;  // of each way in
  std::vector<std::unique_ptr<StandbyEndpoint>> endpoints;
  std::shared_ptr<grpc::ServerCredentials> tcp_credentials;
  std::unique_ptr<rpc::Acceptor> acceptor;  // hands over to the endpoints
};

StandbyEndpoint& Server::Parts::add_endpoint(Identify identify, std::shared_ptr<grpc::ServerCredentials> credentials,
                                             std::size_t most_bytes) {
  const auto& answering =
      answers.emplace_back(std::make_shared<Answers>(log, handlers, readers.emplace_back(1).get_executor()));
  auto make = [this, answering, identify = std::move(identify), credentials = std::move(credentials), most_bytes] {
    return std::make_unique<Endpoint>(std::make_unique<EvictionService>(streams, pre_kills, calls, answering, identify),
                                      credentials, most_bytes);
  };
  return *endpoints.emplace_back(std::make_unique<StandbyEndpoint>(std::move(make), options.rest));
}

Result<void> Server::Parts::open_socket(const std::string& key, const std::string& path, Role role) {
  const bool for_all = role == Role::Reader;
  std::string group;
  if (for_all) {
    group = options.group.empty() ? os::usual_group() : options.group;
    // What can be wrong is found before there is a socket.
    if (!options.group.empty())
      if (const auto found = os::find_group(group); !found) return fail(found.error(), "api.group");
  }
  auto socket = os::ListeningSocket::open(path);
  if (!socket) return fail(socket.error(), key);
  auto admitted = os::admit_to_socket(path, group, for_all ? 0660 : 0600);
  // An agent that is not root may not give it to a group that the configuration does not name.
  if (!admitted && options.group.empty()) admitted = os::admit_to_socket(path, "", for_all ? 0660 : 0600);
  if (!admitted) return fail(admitted.error(), key);

  const auto remedy = options.admin_socket.empty() ? std::string("there is no admin.sock")
                                                   : fmt::format("use admin.sock ({})", options.admin_socket);
  auto& endpoint = add_endpoint(
      [this, key, role, remedy](const grpc::ServerContext& context) {
        const auto peer = peers.find(context.peer());
        if (!peer) return Caller{.role = role, .name = key, .account = context.peer(), .remedy = remedy};
        return Caller{.role = role,
                      .name = fmt::format("{}, {}", rpc::describe_peer(*peer, users.find(peer->uid)), key),
                      .account = fmt::format("uid {}", peer->uid),
                      .remedy = remedy};
      },
      nullptr, for_all ? largest_message : largest_of_administrators);
  listeners.push_back({.name = key,
                       .socket = socket->take(),
                       .greeting = rpc::Greeting::Http2,
                       .let_in =
                           [this, &endpoint](os::FileDescriptor connection) {
                             const auto peer = rpc::peer_of(connection.get());
                             if (peer) users.prepare(peer->uid);
                             peers.remember(connection.get(), peer);
                             endpoint.take(std::move(connection));
                           },
                       .look_after = [&endpoint] { return endpoint.look_after(); }});
  sockets.push_back(*std::move(socket));
  return {};
}

Result<void> Server::Parts::open_tcp(const TcpOptions& tcp) {
  auto sockets = os::listen_on_tcp(tcp.address);
  if (!sockets) return fail(sockets.error(), "api.tcp.address");
  tcp_credentials = server_credentials(tcp.tls);  // which read the files anew for as long as they are there
  auto& endpoint = add_endpoint(
      [tls = tcp.tls](const grpc::ServerContext& context) {
        const auto certificate = context.auth_context();
        return identify(certificate ? names_of(*certificate) : CertificateNames{}, context.peer(), tls);
      },
      tcp_credentials, largest_message);
  for (auto& socket : *sockets)
    listeners.push_back({.name = "api.tcp.address",
                         .socket = std::move(socket),
                         .greeting = rpc::Greeting::Tls,
                         .let_in = [&endpoint](os::FileDescriptor connection) { endpoint.take(std::move(connection)); },
                         .look_after = [&endpoint] { return endpoint.look_after(); }});
  return {};
}

Server::Server(ServerOptions options, events::EventLog& log, const Handlers& handlers)
    : parts_(std::make_unique<Parts>(std::move(options), log, handlers)) {}

Server::~Server() { shutdown(); }

Result<void> Server::start() {
  auto& parts = *parts_;
  const auto& options = parts.options;
  const auto open = [&]() -> Result<void> {
    if (!options.socket.empty())
      if (auto opened = parts.open_socket("evictd.sock", options.socket, Role::Reader); !opened) return opened;
    if (!options.admin_socket.empty())
      if (auto opened = parts.open_socket("admin.sock", options.admin_socket, Role::Admin); !opened) return opened;
    if (options.tcp)
      if (auto opened = parts.open_tcp(*options.tcp); !opened) return opened;
    return {};
  };
  if (auto opened = open(); !opened) {
    shutdown();
    return opened;
  }
  parts.acceptor = std::make_unique<rpc::Acceptor>(std::move(parts.listeners),
                                                   rpc::AcceptorLimits{.connections = most_connections(options),
                                                                       .patience = options.patience,
                                                                       .between_looks = options.rest / 2,
                                                                       .unread = options.unread});
  return {};
}

void Server::set_serving(bool serving) {
  for (const auto& endpoint : parts_->endpoints) endpoint->set_serving(serving);
}

void Server::shutdown(std::chrono::milliseconds timeout) {
  auto& parts = *parts_;
  parts.acceptor.reset();
  parts.listeners.clear();
  if (parts.endpoints.empty()) return;
  set_serving(false);
  parts.streams->close();
  parts.pre_kills->close();
  for (const auto& answering : parts.answers) answering->stop();
  parts.calls->abort_all(rpc::shutting_down());
  const auto deadline = std::chrono::system_clock::now() + timeout;
  for (const auto& endpoint : parts.endpoints) endpoint->shutdown(deadline);
  parts.endpoints.clear();
  // The last of these waits until gRPC is through with reading its files, whose disk may hang.
  if (parts.tcp_credentials)
    rpc::end_grpc(std::make_unique<std::shared_ptr<grpc::ServerCredentials>>(std::move(parts.tcp_credentials)),
                  "gRPC, for the files of api.tcp");
  for (auto& reader : parts.readers) reader.stop();
  for (auto& reader : parts.readers) reader.join();
  parts.sockets.clear();
}

}  // namespace evictd::api
