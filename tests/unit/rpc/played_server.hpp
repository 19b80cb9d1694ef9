#pragma once
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "os/file_descriptor.hpp"

namespace evictd::test {

/// A frame of HTTP/2 (RFC 9113, section 4.1).
struct Frame {
  std::uint8_t type = 0;
  std::uint8_t flags = 0;
  std::uint32_t stream = 0;
  std::string payload{};
};

namespace frame_type {
inline constexpr std::uint8_t data = 0;
inline constexpr std::uint8_t headers = 1;
inline constexpr std::uint8_t rst_stream = 3;
inline constexpr std::uint8_t settings = 4;
inline constexpr std::uint8_t ping = 6;
inline constexpr std::uint8_t goaway = 7;
inline constexpr std::uint8_t window_update = 8;
}  // namespace frame_type

inline std::string big_endian(std::uint32_t number) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(number >> shift & 0xff);
  return bytes;
}

/// The server's end of a connection, which says what the test says, byte by byte: what no server of a library would.
class PlayedServer {
 public:
  PlayedServer() {
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) == 0);
    here_.reset(ends[0]);
    there_.reset(ends[1]);
  }

  /// For the client, once.
  [[nodiscard]] os::FileDescriptor take_client_end() { return std::move(there_); }
  void close() { here_.reset(); }
  [[nodiscard]] int socket() const { return here_.get(); }

  void send(std::string_view bytes) {
    // What a socket holds is enough for any test, but for those that fill it.
    REQUIRE(::send(here_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
  }
  void send(const Frame& frame) {
    std::string bytes = big_endian(static_cast<std::uint32_t>(frame.payload.size())).substr(1);
    bytes += static_cast<char>(frame.type);
    bytes += static_cast<char>(frame.flags);
    bytes += big_endian(frame.stream);
    send(bytes + frame.payload);
  }

  using Fields = std::initializer_list<std::pair<std::string_view, std::string_view>>;
  void greet() { send({.type = frame_type::settings}); }
  void send_headers(std::uint32_t stream, const Fields& fields, bool is_end = false) {
    std::string block;
    for (const auto& [name, value] : fields) {
      block += '\0';  // a literal that is not indexed, with a new name (RFC 7541, section 6.2.2)
      block += static_cast<char>(name.size());
      block.append(name) += static_cast<char>(value.size());
      block += value;
    }
    const auto flags = static_cast<std::uint8_t>(0x4 | (is_end ? 0x1 : 0));  // END_HEADERS, END_STREAM
    send({.type = frame_type::headers, .flags = flags, .stream = stream, .payload = block});
  }
  void send_data(std::uint32_t stream, std::string payload) {
    send({.type = frame_type::data, .stream = stream, .payload = std::move(payload)});
  }

  /// Takes what the client has sent by now, and appends its frames. False: the client has closed.
  bool receive() {
    std::array<char, 4096> bytes;
    for (;;) {
      const auto size = ::recv(here_.get(), bytes.data(), bytes.size(), 0);
      if (size < 0 && errno == EAGAIN) break;
      if (size <= 0) return false;
      received_.append(bytes.data(), static_cast<std::size_t>(size));
    }
    parse();
    return true;
  }
  [[nodiscard]] const std::vector<Frame>& frames() const { return frames_; }
  [[nodiscard]] int count(std::uint8_t type) const {
    int found = 0;
    for (const auto& frame : frames_) found += frame.type == type ? 1 : 0;
    return found;
  }
  /// How much may be sent on the stream in all, by what the client has said so far and what a stream has at first.
  [[nodiscard]] std::int64_t room_of(std::uint32_t stream, std::int64_t at_first) const {
    for (const auto& frame : frames_) {
      if (frame.type != frame_type::window_update || frame.stream != stream) continue;
      std::uint32_t more = 0;
      for (const char byte : frame.payload) more = more << 8 | static_cast<unsigned char>(byte);
      at_first += more;
    }
    return at_first;
  }

 private:
  void parse() {
    constexpr std::string_view preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    if (received_.starts_with(preface)) received_.erase(0, preface.size());
    const auto byte = [&](std::size_t at) {
      return static_cast<std::uint32_t>(static_cast<unsigned char>(received_[at]));
    };
    while (received_.size() >= 9) {
      const std::size_t size = byte(0) << 16 | byte(1) << 8 | byte(2);
      if (received_.size() < 9 + size) return;
      frames_.push_back({.type = static_cast<std::uint8_t>(byte(3)),
                         .flags = static_cast<std::uint8_t>(byte(4)),
                         .stream = byte(5) << 24 | byte(6) << 16 | byte(7) << 8 | byte(8),
                         .payload = received_.substr(9, size)});
      received_.erase(0, 9 + size);
    }
  }

  os::FileDescriptor here_;
  os::FileDescriptor there_;
  std::string received_;
  std::vector<Frame> frames_;
};

}  // namespace evictd::test
