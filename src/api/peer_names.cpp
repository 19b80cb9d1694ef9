#include "api/peer_names.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/socket.h>

#include <array>
#include <charconv>
#include <string_view>
#include <system_error>
#include <utility>

namespace evictd::api {
namespace {

std::string user_name(uid_t uid) {
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) return "";
  return entry.pw_name;
}

}  // namespace

void PeerNames::remember(int connection, std::string name) {
  const std::lock_guard lock(mutex_);
  names_.insert_or_assign(connection, std::move(name));
}

std::string PeerNames::find(const std::string& peer) const {
  constexpr std::string_view scheme = "fd:";
  if (!peer.starts_with(scheme)) return "";
  int number = -1;
  const auto [end, error] = std::from_chars(peer.data() + scheme.size(), peer.data() + peer.size(), number);
  if (error != std::errc{} || end != peer.data() + peer.size()) return "";
  const std::lock_guard lock(mutex_);
  const auto found = names_.find(number);
  return found == names_.end() ? "" : found->second;
}

std::string describe_peer(int connection) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return "";
  auto text = fmt::format("uid {}", credentials.uid);
  if (const auto name = user_name(credentials.uid); !name.empty()) text += fmt::format(" ({})", name);
  // 0: it lives in a process id namespace that we do not see.
  if (credentials.pid != 0) text += fmt::format(", pid {}", credentials.pid);
  return text;
}

}  // namespace evictd::api
