#include "evictctl/client.hpp"

#include <doctest/doctest.h>

#include <iostream>
#include <string>

#include "evictctl/address.hpp"
#include "evictctl/commands.hpp"

namespace evictd::ctl::client_test {
namespace {

TEST_CASE("an address is a unix socket in any of the usual forms") {
  CHECK(socket_of("unix:///run/x.sock").value() == "/run/x.sock");
  CHECK(socket_of("unix:/run/x.sock").value() == "/run/x.sock");
  CHECK(socket_of("/run/x.sock").value() == "/run/x.sock");
  for (const std::string wrong : {"", "localhost:80", "unix:", "unix://x", "x.sock", "tcp:///run/x"})
    CHECK(socket_of(wrong).error().message ==
          "\"" + wrong + "\" is not a unix socket such as unix:///run/evictd/evictd.sock");
}

Result<Client> connect(const std::string& address) {
  Context context{.address = address, .out = std::cout};
  return Client::connect(context);
}

TEST_CASE("a socket that nobody answers on is told apart from one that is too long") {
  CHECK(connect("unix:///nowhere/x.sock").error().message ==
        "no agent answers at /nowhere/x.sock (no such file): is evictd running?");
  const std::string path = "/" + std::string(120, 'x');
  CHECK(connect(path).error().message == path + " is longer than a socket's path may be (107 bytes)");
}

}  // namespace
}  // namespace evictd::ctl::client_test
