#pragma once
#include <mutex>
#include <string>
#include <unordered_map>

namespace evictd::api {

/// Who is at the other end of a unix connection that gRPC was handed, by the only thing that gRPC says of it: "fd:7".
///
/// A number is used again only when its connection is closed, which gRPC does after the last call on it has ended. So
/// while a call is open the name is that of its caller. No role hangs on it all the same.
class PeerNames {
 public:
  /// Before the connection is handed over. In place of whoever had the number before. Any thread.
  void remember(int connection, std::string name);

  /// The name for what grpc::ServerContext::peer() says; empty where it is no such connection. Any thread.
  [[nodiscard]] std::string find(const std::string& peer) const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<int, std::string> names_;
};

/// Who opened a unix connection, as the kernel saw it then: "uid 0 (root), pid 4711". A name service may be asked for
/// the user's name, which can take its time: never on the reactor.
[[nodiscard]] std::string describe_peer(int connection);

}  // namespace evictd::api
