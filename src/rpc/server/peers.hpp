#pragma once
#include <sys/types.h>

#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

namespace evictd::rpc {

/// Who opened a unix connection, as the kernel saw it then.
struct Peer {
  uid_t uid = 0;
  pid_t pid = 0;  ///< 0: it lives in a process id namespace that we do not see

  friend bool operator==(const Peer&, const Peer&) = default;
};

/// Nothing where it is no such connection.
[[nodiscard]] std::optional<Peer> peer_of(int connection);

/// "uid 0 (root), pid 4711". `user`: its name; empty: unknown.
[[nodiscard]] std::string describe_peer(const Peer& peer, const std::string& user);

/// Who is at the other end of a unix connection that gRPC was handed, by the only thing that gRPC says of it: "fd:7".
///
/// A number is used again only when its connection is closed, which gRPC does after the last call on it has ended. So
/// while a call is open the peer is its caller. No role hangs on it all the same.
class Peers {
 public:
  /// Before the connection is handed over. In place of the connection that had the number before. Any thread.
  void remember(int connection, std::optional<Peer> peer);

  /// For what grpc::ServerContext::peer() says; nothing where it is no such connection. Any thread.
  [[nodiscard]] std::optional<Peer> find(const std::string& peer) const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<int, std::optional<Peer>> peers_;
};

}  // namespace evictd::rpc
