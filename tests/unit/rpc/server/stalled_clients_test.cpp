#include "rpc/server/stalled_clients.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <optional>

#include "api/running_server.hpp"
#include "fixture/deaf_client.hpp"
#include "os/file_descriptor.hpp"

namespace evictd::rpc::stalled_clients_test {
namespace {

using namespace std::chrono_literals;
using test::Client;
using test::eventually;
using test::RunningServer;

/// A connection whose client reads only when it is told to.
class Connection {
 public:
  Connection() {
    std::array<int, 2> made{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, made.data()) == 0);
    server.reset(made[0]);
    client.reset(made[1]);
    while (::send(server.get(), data.data(), data.size(), MSG_NOSIGNAL) > 0) {
    }
  }
  void read_all() {
    while (::recv(client.get(), data.data(), data.size(), 0) > 0) {
    }
  }
  [[nodiscard]] bool is_cut_off() const {
    pollfd look{.fd = client.get(), .events = POLLRDHUP, .revents = 0};
    return ::poll(&look, 1, 0) == 1;
  }
  [[nodiscard]] OpenSocket of_server() const { return OpenSocket::look(server.get()).value(); }

  os::FileDescriptor server;
  os::FileDescriptor client;

 private:
  std::array<char, 4096> data{};
};

struct Looking {
  boost::asio::io_context context{1};
  int cut_off = 0;
  StalledClients clients{context.get_executor(), 50ms, [this](int) { ++cut_off; }};
};

}  // namespace

TEST_CASE("a client that takes nothing is cut off, however often it is looked at") {
  Connection connection;
  Looking looking;
  for (int look = 0; look < 3; ++look) looking.clients.look_at(connection.of_server());
  CHECK_FALSE(connection.is_cut_off());
  looking.context.run();
  CHECK(connection.is_cut_off());
  CHECK(looking.cut_off == 1);
}

TEST_CASE("a client that reads before its time is over stays") {
  Connection connection;
  Looking looking;
  looking.clients.look_at(connection.of_server());
  connection.read_all();
  looking.context.run();
  CHECK_FALSE(connection.is_cut_off());
  CHECK(looking.cut_off == 0);
}

TEST_CASE("a client whose socket has room is not waited for") {
  Connection connection;
  connection.read_all();
  Looking looking;
  looking.clients.look_at(connection.of_server());
  CHECK(looking.context.run() == 0);
}

TEST_CASE("who got the number of a connection that was closed is not meant") {
  Connection first;
  const auto gone = first.of_server();
  Connection other;
  REQUIRE(::dup3(other.server.get(), first.server.get(), O_CLOEXEC) == gone.number);
  Looking looking;
  looking.clients.look_at(gone);
  CHECK(looking.context.run() == 0);
  CHECK_FALSE(other.is_cut_off());
}

TEST_CASE("a connection that is closed while it is watched is let go of") {
  Connection connection;
  Looking looking;
  looking.clients.look_at(connection.of_server());
  connection.client.reset();
  looking.context.run();
  CHECK(looking.cut_off == 0);
}

TEST_CASE("once a client that does not read is cut off, others of its account are answered again") {
  api::ServerOptions options;
  options.rest = 200ms;
  options.unread = 200ms;
  RunningServer running(options);
  running.node.set_version(std::string(1000, 'v'));
  fixture::DeafClient deaf{running.socket};
  deaf.fill("/evictd.v1.EvictionService/GetNodeStatus");
  const Client client(running.socket);
  CHECK(eventually([&] {
    grpc::ClientContext context;
    v1::NodeStatus status;
    return client.stub->GetNodeStatus(&context, {}, &status).ok();
  }));
}

}  // namespace evictd::rpc::stalled_clients_test
