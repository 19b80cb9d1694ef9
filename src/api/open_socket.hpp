#pragma once
#include <sys/socket.h>
#include <sys/stat.h>

#include <optional>

namespace evictd::api {

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
  [[nodiscard]] bool is_open() const { return look(number) == *this; }
  /// Ends the connection for both sides; who holds the socket closes it. For the process's end: what got its number
  /// since the look would be met.
  void cut_off() const {
    if (is_open()) ::shutdown(number, SHUT_RDWR);
  }
  friend bool operator==(const OpenSocket&, const OpenSocket&) = default;
};

}  // namespace evictd::api
