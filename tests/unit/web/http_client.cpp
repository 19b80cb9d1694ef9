#include "web/http_client.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "fixture/patience.hpp"

namespace evictd::test {
namespace {

constexpr timeval socket_patience{.tv_sec = patience.count(), .tv_usec = 0};

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

[[noreturn]] void fail(const char* what) { throw std::runtime_error(std::string(what) + ": " + std::strerror(errno)); }

}  // namespace

RawConnection::RawConnection(std::uint16_t port) : socket_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
  if (socket_ < 0) fail("socket");
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &socket_patience, sizeof socket_patience);
  ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &socket_patience, sizeof socket_patience);
  const auto address = loopback(port);
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return;
  const int error = errno;
  ::close(socket_);
  errno = error;
  fail("connect");
}

RawConnection::~RawConnection() { ::close(socket_); }

bool RawConnection::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

void RawConnection::finish_sending() { ::shutdown(socket_, SHUT_WR); }

bool RawConnection::read_more() {
  std::array<char, 65536> buffer{};
  const auto size = ::recv(socket_, buffer.data(), buffer.size(), 0);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) fail("nothing came for a minute");
  if (size <= 0) return false;  // a reset is an end, too
  received_.append(buffer.data(), static_cast<std::size_t>(size));
  return true;
}

std::string RawConnection::read_until(std::string_view end) {
  std::size_t found = 0;
  while ((found = received_.find(end)) == std::string::npos)
    if (!read_more()) throw std::runtime_error("the connection ended after: " + received_);
  auto text = received_.substr(0, found + end.size());
  received_.erase(0, found + end.size());
  return text;
}

std::string RawConnection::read_to_end() {
  while (read_more()) {
  }
  return std::exchange(received_, {});
}

std::string RawConnection::read_exactly(std::size_t size) {
  while (received_.size() < size)
    if (!read_more()) throw std::runtime_error("the connection ended after: " + received_);
  auto text = received_.substr(0, size);
  received_.erase(0, size);
  return text;
}

HttpAnswer http_request(std::uint16_t port, std::string_view method, std::string_view target) {
  RawConnection connection{port};
  connection.send(std::string(method) + " " + std::string(target) +
                  " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  HttpAnswer answer{.header = connection.read_until("\r\n\r\n")};
  if (!answer.header.starts_with("HTTP/1.1 ")) throw std::runtime_error("no HTTP: " + answer.header);
  answer.status = std::stoi(answer.header.substr(9, 3));
  // Some servers, a browser's DevTools among them, keep the connection open all the same.
  constexpr std::string_view length = "Content-Length:";
  const auto given = answer.header.find(length);
  answer.body = given == std::string::npos || method == "HEAD"
                    ? connection.read_to_end()
                    : connection.read_exactly(std::stoul(answer.header.substr(given + length.size())));
  return answer;
}

std::uint16_t free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto address = loopback(0);
  socklen_t size = sizeof address;
  const bool bound = ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                     ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  ::close(socket);
  if (!bound) fail("bind");
  return ntohs(address.sin_port);
}

}  // namespace evictd::test
