#include "evictctl/address.hpp"

#include <doctest/doctest.h>
#include <sys/socket.h>

#include <cerrno>
#include <fstream>
#include <vector>

#include "api/temporary_directory.hpp"
#include "os/file_descriptor.hpp"
#include "os/unix_address.hpp"

namespace evictd::ctl::address_test {
namespace {

os::FileDescriptor new_socket(int flags = 0) {
  return os::FileDescriptor{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0)};
}

TEST_CASE("HOST:PORT is told from a socket") {
  for (const auto* tcp : {"localhost:80", "10.0.0.7:9443", "[::1]:9443", "node-7.example:1"}) CHECK(is_tcp(tcp));
  for (const auto* other : {"", "localhost", "localhost:", ":80", "localhost:0", "localhost:65536", "localhost:x",
                            "/run/evictd/evictd.sock", "unix:///run/x:80", "unix:80", "https://localhost:80"})
    CHECK_FALSE(is_tcp(other));
}

TEST_CASE("files go with HOST:PORT, all of them, and with nothing else") {
  const auto error_of = [](const std::string& address, const TlsFiles& files) {
    const auto checked = check_address(address, files);
    return checked ? "" : checked.error().message;
  };
  CHECK(error_of("unix:///run/x", {}) == "");
  CHECK(error_of("localhost:80", {"ca", "cert", "key"}) == "");
  const std::string incomplete = "--address localhost:80 is asked by mutual TLS: it needs --ca, --cert and --key";
  for (const auto& files :
       {TlsFiles{}, TlsFiles{"ca", "cert", ""}, TlsFiles{"ca", "", "key"}, TlsFiles{"", "cert", "key"}})
    CHECK(error_of("localhost:80", files) == incomplete);
  CHECK(error_of("/run/x", {"", "", "key"}) == "--ca, --cert and --key are for an --address HOST:PORT");
  CHECK(error_of("x.sock", {}) ==
        "--address: \"x.sock\" is not a unix socket such as unix:///run/evictd/evictd.sock, nor HOST:PORT");
}

TEST_CASE("a change goes to admin.sock beside the socket, if it is one") {
  const test::TemporaryDirectory directory;
  const auto socket = directory / "evictd.sock";
  const auto admin = directory / "admin.sock";
  CHECK(admin_socket_beside(socket) == socket);
  std::ofstream(admin) << "no socket";
  CHECK(admin_socket_beside(socket) == socket);
  std::filesystem::remove(admin);
  const auto listener = new_socket();
  REQUIRE(os::bind_to(listener.get(), admin) == 0);
  CHECK(admin_socket_beside(socket) == admin);
  CHECK(admin_socket_beside(admin) == admin);
}

TEST_CASE("a socket whose agent is too busy to take connections is somebody's; one that nobody listens on is not") {
  const test::TemporaryDirectory directory;
  const auto socket = directory / "evictd.sock";
  const auto listener = new_socket();
  REQUIRE(os::bind_to(listener.get(), socket) == 0);
  CHECK(try_socket(socket).error().message ==
        "no agent answers at " + socket + " (connection refused): is evictd running?");

  REQUIRE(::listen(listener.get(), 0) == 0);
  CHECK(try_socket(socket).has_value());
  std::vector<os::FileDescriptor> waiting;
  int error = 0;
  while (error == 0) {
    waiting.push_back(new_socket(SOCK_NONBLOCK));
    error = os::connect_to(waiting.back().get(), socket);
  }
  REQUIRE(error == EAGAIN);
  CHECK(try_socket(socket).has_value());
}

TEST_CASE("a port that nobody listens on is said") {
  CHECK(try_tcp("127.0.0.1:1").error().message ==
        "no agent answers at 127.0.0.1:1 (connection refused): is evictd running?");
}

}  // namespace
}  // namespace evictd::ctl::address_test
