#pragma once
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

namespace evictd::rpc {

/// An open socket, told from another one that got its number later. gRPC does not say when it closes a connection that
/// it was handed: its number is looked at instead.
struct OpenSocket {
  int number = -1;
  dev_t device = 0;
  ino_t inode = 0;

  static std::optional<OpenSocket> look(int number) {
    struct stat found{};
    if (::fstat(number, &found) != 0) return std::nullopt;
    return OpenSocket{.number = number, .device = found.st_dev, .inode = found.st_ino};
  }
  [[nodiscard]] bool is_open() const { return is_same(number); }
  /// Whether the descriptor is one of this very socket.
  [[nodiscard]] bool is_same(int descriptor) const {
    const auto found = look(descriptor);
    return found && found->device == device && found->inode == inode;
  }
  friend bool operator==(const OpenSocket&, const OpenSocket&) = default;
};

/// The connections that gRPC was handed and has not closed. One thread's at a time.
class OpenSockets {
 public:
  void add(int number) {
    if (sockets_.size() >= most_unseen_) static_cast<void>(open());
    if (const auto socket = OpenSocket::look(number)) sockets_.push_back(*socket);
  }
  /// Looks at each.
  [[nodiscard]] const std::vector<OpenSocket>& open() {
    std::erase_if(sockets_, [](const OpenSocket& socket) { return !socket.is_open(); });
    most_unseen_ = std::max(most_unseen_at_first, 2 * sockets_.size());
    return sockets_;
  }
  /// Looks at none: with such as were closed since the last look.
  [[nodiscard]] std::size_t at_most() const { return sockets_.size(); }
  /// Ends each connection for both sides; who holds a socket closes it. For the process's end: who got one's number
  /// since the look at it would be met.
  void cut_off() const {
    for (const auto& socket : sockets_)
      if (socket.is_open()) ::shutdown(socket.number, SHUT_RDWR);
  }

 private:
  static constexpr std::size_t most_unseen_at_first = 256;

  std::vector<OpenSocket> sockets_;                 // and such as were closed since the last look
  std::size_t most_unseen_ = most_unseen_at_first;  // entries until the next look, however soon that is
};

}  // namespace evictd::rpc
