#include "os/tcp_address.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace evictd::os::tcp_address_test {
namespace {

std::string error_of(const std::string& text) {
  const auto address = parse_tcp_address(text);
  return address ? "" : address.error().message;
}

int port_of(const os::FileDescriptor& socket) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  REQUIRE(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  return ntohs(address.sin_port);
}

TEST_CASE("an address is a host and a port") {
  CHECK(parse_tcp_address("10.0.0.7:9443").value() == TcpAddress{"10.0.0.7", "9443"});
  CHECK(parse_tcp_address("node-7.example:1").value() == TcpAddress{"node-7.example", "1"});
  CHECK(parse_tcp_address("[::1]:65535").value() == TcpAddress{"::1", "65535"});
  for (const auto* no_port : {"10.0.0.7", "10.0.0.7:", "[::1]", "node-7", ""})
    CHECK(error_of(no_port) == "\"" + std::string(no_port) + "\" has no port: HOST:PORT is wanted");
  for (const auto* bad_port : {"a:0", "a:65536", "a:x", "a:1x", "a:-1"})
    CHECK(error_of(bad_port).find(" is no port (1 to 65535)") != std::string::npos);
  CHECK(error_of(":9443") == "\":9443\" has no host: HOST:PORT is wanted, 0.0.0.0 for all addresses");
  CHECK(error_of("::1:9443") == "\"::1:9443\": an IPv6 address stands in brackets: [::1]:9443");
}

TEST_CASE("whoever has the port already is in the way") {
  // Some port that is free; the first to take it here keeps it.
  std::vector<os::FileDescriptor> first;
  int port = 20'000;
  for (; port < 60'000; port += 97)
    if (auto sockets = listen_on_tcp({"127.0.0.1", std::to_string(port)})) {
      first = *std::move(sockets);
      break;
    }
  REQUIRE(first.size() == 1);
  CHECK(port_of(first.front()) == port);
  const auto second = listen_on_tcp({"127.0.0.1", std::to_string(port)});
  REQUIRE_FALSE(second.has_value());
  CHECK(second.error().message == "127.0.0.1:" + std::to_string(port) + ": Address already in use");
}

TEST_CASE("a host that is not here is said") {
  CHECK(listen_on_tcp({"192.0.2.1", "9443"}).error().message == "192.0.2.1:9443: Cannot assign requested address");
  CHECK(listen_on_tcp({"no host", "9443"}).error().message.starts_with("no host: "));
}

}  // namespace
}  // namespace evictd::os::tcp_address_test
