#pragma once
#include <doctest/doctest.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "os/file_descriptor.hpp"
#include "os/unix_address.hpp"

namespace integration {

/// The socket that systemd would give a service to tell how it is (sd_notify(3)).
class NotifySocket {
 public:
  explicit NotifySocket(std::filesystem::path path)
      : path_{std::move(path)}, socket_{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)} {
    REQUIRE(evictd::os::bind_to(socket_.get(), path_.native()) == 0);
  }

  /// Another service has filled the queue: who waits to send waits until somebody reads.
  void fill() const {
    const evictd::os::FileDescriptor other{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    REQUIRE(evictd::os::connect_to(other.get(), path_.native()) == 0);
    while (::send(other.get(), "READY=1", 7, MSG_DONTWAIT) > 0) {
    }
  }

  /// All messages so far.
  const std::vector<std::string>& messages() {
    std::array<char, 4096> buffer{};
    for (;;) {
      const auto size = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (size < 0) return messages_;
      messages_.emplace_back(buffer.data(), static_cast<std::size_t>(size));
    }
  }
  std::ptrdiff_t count(std::string_view message) {
    return std::ranges::count_if(messages(), [&](const std::string& known) { return known.starts_with(message); });
  }

 private:
  std::filesystem::path path_;
  evictd::os::FileDescriptor socket_;
  std::vector<std::string> messages_;
};

}  // namespace integration
