#pragma once
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdint>
#include <string_view>
#include <utility>

#include "core/error.hpp"

namespace evictd::host {

/// The socket on which systemd hears how a service is (sd_notify(3)). sd_notify() itself waits while the socket's
/// queue, which all services share, is full: PID 1 reads nothing during a daemon-reload, or when the machine thrashes.
class NotifySocket {
 public:
  enum class Sent : std::uint8_t {
    Yes,
    Full,  ///< later, perhaps
    No,    ///< no socket listens there, or the message is refused
  };

  /// `address` as $NOTIFY_SOCKET has it: a path, or "@" and an abstract name. Error: one of another kind, such as
  /// "vsock:…", or one that is too long.
  [[nodiscard]] static Result<NotifySocket> open(std::string_view address);

  NotifySocket(NotifySocket&& other) noexcept;
  NotifySocket& operator=(NotifySocket&&) = delete;
  ~NotifySocket();

  /// One message, "NAME=value" lines, with a copy of the descriptor unless it is -1. Never waits.
  [[nodiscard]] Sent send(std::string_view message, int descriptor = -1) const;

  /// Whether systemd has read everything that was sent.
  [[nodiscard]] bool all_read() const;

 private:
  NotifySocket(int socket, const sockaddr_un& address, socklen_t size)
      : socket_{socket}, address_{address}, address_size_{size} {}

  int socket_;
  sockaddr_un address_;
  socklen_t address_size_;
};

}  // namespace evictd::host
