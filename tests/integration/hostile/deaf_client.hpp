#pragma once
#include <doctest/doctest.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "os/file_descriptor.hpp"
#include "os/unix_address.hpp"
#include "testbed/wait.hpp"

namespace integration {

/// A client that asks over HTTP/2 for much and takes nothing of it, whatever gRPC would do in its place.
class DeafClient {
 public:
  explicit DeafClient(const std::filesystem::path& socket) : fd_{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
    REQUIRE(evictd::os::connect_to(fd_.get(), socket.native()) == 0);
    const timeval patience{.tv_sec = 3, .tv_usec = 0};
    REQUIRE(::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0);
    const std::string settings("\0\4\x7f\xff\xff\xff", 6);  // INITIAL_WINDOW_SIZE: as much as can be said
    const std::string window("\x7f\xff\0\0", 4);
    REQUIRE(say("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, settings) + frame(8, 0, 0, window)));
  }

  /// Asks until its socket is full in one direction or the other: "/package.Service/Method".
  void fill(std::string_view method) {
    testbed::wait_until("its socket is full", std::chrono::seconds{60}, [&, before = 0]() mutable {
      if (!ask(method, 300)) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds{500});
      return std::exchange(before, unread()) == unread() && before > 0;
    });
  }

 private:
  /// False: the server takes no more, for a while already.
  [[nodiscard]] bool ask(std::string_view method, int times) {
    std::string headers;
    for (const auto& [name, value] : {std::pair<std::string_view, std::string_view>{":method", "POST"},
                                      {":scheme", "http"},
                                      {":path", method},
                                      {":authority", "localhost"},
                                      {"content-type", "application/grpc"},
                                      {"te", "trailers"}})
      headers += std::string(1, '\0') + sized(name) + sized(value);  // a literal that is not indexed
    for (int i = 0; i < times; ++i, stream_ += 2)
      if (!say(frame(1, 4, stream_, headers) + frame(0, 1, stream_, std::string(5, '\0')))) return false;
    return true;
  }

  /// Bytes that lie there for it.
  [[nodiscard]] int unread() const {
    int bytes = 0;
    REQUIRE(::ioctl(fd_.get(), FIONREAD, &bytes) == 0);
    return bytes;
  }
  static std::string sized(std::string_view text) {
    return static_cast<char>(text.size()) + std::string(text);  // below 127 bytes
  }
  static std::string big_endian(std::uint32_t number, std::size_t bytes) {
    std::string text;
    while (bytes-- > 0) text += static_cast<char>(number >> (8 * bytes));
    return text;
  }
  static std::string frame(char type, char flags, std::uint32_t stream, const std::string& payload) {
    return big_endian(static_cast<std::uint32_t>(payload.size()), 3) + type + flags + big_endian(stream, 4) + payload;
  }
  [[nodiscard]] bool say(const std::string& bytes) const {
    const auto taken = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    return taken == static_cast<ssize_t>(bytes.size());
  }

  evictd::os::FileDescriptor fd_;
  std::uint32_t stream_ = 1;
};

}  // namespace integration
