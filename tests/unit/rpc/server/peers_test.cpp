#include "rpc/server/peers.hpp"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "os/file_descriptor.hpp"

namespace evictd::rpc::peers_test {
namespace {

TEST_CASE("a connection's peer is found by what gRPC calls it, until its number is another one's") {
  Peers peers;
  peers.remember(7, Peer{1, 11});
  peers.remember(8, Peer{2, 12});
  CHECK(peers.find("fd:7") == Peer{1, 11});
  peers.remember(7, Peer{3, 13});
  CHECK(peers.find("fd:7") == Peer{3, 13});
  for (const auto* unknown : {"fd:9", "fd:", "fd:7x", "7", "unix:", "ipv4:10.0.0.7:7", ""})
    CHECK(peers.find(unknown) == std::nullopt);
}

TEST_CASE("the kernel says who opened a connection") {
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
  CHECK(peer_of(ends[0]) == Peer{::geteuid(), ::getpid()});
  for (const int end : ends) ::close(end);
  CHECK(peer_of(-1) == std::nullopt);
  const os::FileDescriptor tcp(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  CHECK(peer_of(tcp.get()) == std::nullopt);
}

TEST_CASE("a peer is described by what is known of it") {
  CHECK(describe_peer({0, 4711}, "root") == "uid 0 (root), pid 4711");
  CHECK(describe_peer({1000, 4711}, "") == "uid 1000, pid 4711");
  CHECK(describe_peer({1000, 0}, "") == "uid 1000");
}

}  // namespace
}  // namespace evictd::rpc::peers_test
