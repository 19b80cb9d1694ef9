#include "api/peer_names.hpp"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

namespace evictd::api {
namespace {

TEST_CASE("a connection's name is found by what gRPC calls its peer, until its number is another one's") {
  PeerNames names;
  names.remember(7, "the first");
  names.remember(8, "another");
  CHECK(names.find("fd:7") == "the first");
  names.remember(7, "the second");
  CHECK(names.find("fd:7") == "the second");
  for (const auto* unknown : {"fd:9", "fd:", "fd:7x", "7", "unix:", "ipv4:10.0.0.7:7", ""})
    CHECK(names.find(unknown) == "");
}

TEST_CASE("the kernel says who opened a connection") {
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
  const auto text = describe_peer(ends[0]);
  CHECK(text.starts_with("uid " + std::to_string(::geteuid())));
  CHECK(text.ends_with(", pid " + std::to_string(::getpid())));
  if (::geteuid() == 0) CHECK(text.starts_with("uid 0 (root), pid "));
  for (const int end : ends) ::close(end);
  CHECK(describe_peer(-1) == "");
}

}  // namespace
}  // namespace evictd::api
