#include "rpc/server/peers.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <string_view>

#include "core/number.hpp"

namespace evictd::rpc {

std::optional<Peer> peer_of(int connection) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return std::nullopt;
  if (credentials.uid == static_cast<uid_t>(-1)) return std::nullopt;  // what Linux says of TCP's
  return Peer{.uid = credentials.uid, .pid = credentials.pid};
}

std::string describe_peer(const Peer& peer, const std::string& user) {
  auto text = fmt::format("uid {}", peer.uid);
  if (!user.empty()) text += fmt::format(" ({})", user);
  if (peer.pid != 0) text += fmt::format(", pid {}", peer.pid);
  return text;
}

void Peers::remember(int connection, std::optional<Peer> peer) {
  const std::lock_guard lock(mutex_);
  peers_.insert_or_assign(connection, peer);
}

std::optional<Peer> Peers::find(const std::string& peer) const {
  constexpr std::string_view scheme = "fd:";
  if (!peer.starts_with(scheme)) return std::nullopt;
  const auto number = core::whole_number<int>(std::string_view(peer).substr(scheme.size()));
  if (!number) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const auto found = peers_.find(*number);
  return found == peers_.end() ? std::nullopt : found->second;
}

}  // namespace evictd::rpc
