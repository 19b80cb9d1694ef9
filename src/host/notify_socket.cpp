#include "host/notify_socket.hpp"

#include <fmt/format.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <system_error>

namespace evictd::host {

Result<NotifySocket> NotifySocket::open(std::string_view address) {
  sockaddr_un target{};
  target.sun_family = AF_UNIX;
  const bool abstract = address.starts_with('@');
  if (!abstract && !address.starts_with('/'))
    return fail(fmt::format("\"{}\" is neither a path nor an abstract socket: systemd is told nothing", address));
  if (address.size() >= sizeof target.sun_path)
    return fail(fmt::format("\"{}\" is too long for a socket: systemd is told nothing", address));
  address.copy(target.sun_path, address.size());
  if (abstract) target.sun_path[0] = '\0';
  // The end of an abstract name is told by the size alone, that of a path by a null byte.
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.size() + (abstract ? 0 : 1));
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0) return fail(fmt::format("no socket: {}", std::generic_category().message(errno)));
  return NotifySocket{socket, target, size};
}

NotifySocket::NotifySocket(NotifySocket&& other) noexcept
    : socket_{std::exchange(other.socket_, -1)}, address_{other.address_}, address_size_{other.address_size_} {}

NotifySocket::~NotifySocket() {
  if (socket_ >= 0) ::close(socket_);
}

NotifySocket::Sent NotifySocket::send(std::string_view message, int descriptor) const {
  // To the name each time: who listens there may have come anew.
  sockaddr_un address = address_;
  iovec text{.iov_base = const_cast<char*>(message.data()), .iov_len = message.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptor)]{};
  msghdr header{};
  header.msg_name = &address;
  header.msg_namelen = address_size_;
  header.msg_iov = &text;
  header.msg_iovlen = 1;
  if (descriptor >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    auto* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(rights), &descriptor, sizeof descriptor);
  }
  if (::sendmsg(socket_, &header, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return Sent::Yes;
  const bool later = errno == EAGAIN || errno == EINTR || errno == ENOBUFS || errno == ENOMEM || errno == ETOOMANYREFS;
  return later ? Sent::Full : Sent::No;
}

/// The kernel charges a datagram to its sender until it is received.
bool NotifySocket::all_read() const {
  int unread = 0;
  return ::ioctl(socket_, SIOCOUTQ, &unread) != 0 || unread == 0;
}

}  // namespace evictd::host
