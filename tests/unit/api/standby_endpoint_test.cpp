#include "api/standby_endpoint.hpp"

#include <doctest/doctest.h>
#include <grpcpp/grpcpp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "api/running_server.hpp"
#include "fixture/no_threads.hpp"
#include "health.grpc.pb.h"
#include "os/file_descriptor.hpp"
#include "os/unix_address.hpp"

namespace evictd::api::standby_endpoint_test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using test::Client;
using test::eventually;
using test::RunningServer;

constexpr std::string_view greeting = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Each server has one thread of this name.
int servers() {
  int found = 0;
  for (const auto& task : fs::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "comm");
    std::string name;
    std::getline(file, name);
    found += name == "API calls" ? 1 : 0;
  }
  return found;
}

ServerOptions resting_soon() {
  ServerOptions options;
  options.rest = 100ms;
  return options;
}

grpc::Status ask_for_status(const Client& client, std::chrono::milliseconds deadline = test::patience) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + deadline);
  v1::NodeStatus status;
  return client.stub->GetNodeStatus(&context, {}, &status);
}

grpc::health::v1::HealthCheckResponse::ServingStatus health(const Client& client) {
  grpc::ClientContext context;
  grpc::health::v1::HealthCheckResponse response;
  REQUIRE(grpc::health::v1::Health::NewStub(client.channel)->Check(&context, {}, &response).ok());
  return response.status();
}

}  // namespace

TEST_CASE("there is a server while somebody is connected, and none otherwise") {
  RunningServer running(resting_soon());
  CHECK(servers() == 0);
  for (int time = 0; time < 3; ++time) {
    {
      const Client client(running.socket);
      CHECK(ask_for_status(client).ok());
      CHECK(servers() == 1);
    }
    CHECK(eventually([] { return servers() == 0; }));
  }
}

TEST_CASE("a server that comes late says whether it serves as one that was there says it") {
  RunningServer running(resting_soon());
  using grpc::health::v1::HealthCheckResponse;
  CHECK(health(Client(running.socket)) == HealthCheckResponse::NOT_SERVING);
  CHECK(eventually([] { return servers() == 0; }));
  running.reactor.run([&] { running.server->set_serving(true); });
  const Client client(running.socket);
  CHECK(health(client) == HealthCheckResponse::SERVING);
  running.reactor.run([&] { running.server->set_serving(false); });
  CHECK(health(client) == HealthCheckResponse::NOT_SERVING);
}

TEST_CASE("whoever listens keeps the server, however long there is nothing to hear") {
  RunningServer running(resting_soon());
  const Client client(running.socket);
  test::Subscriber subscriber(*client.stub, test::new_events());
  CHECK(eventually([&] { return running.subscribers() == 1; }));
  std::this_thread::sleep_for(500ms);
  CHECK(servers() == 1);
  running.append(1);
  CHECK(subscriber.read().kind() == v1::Event::RECOVERED);
}

TEST_CASE("a call whose client has left keeps the server until it is answered") {
  RunningServer running(resting_soon());
  std::optional<Client> client(std::in_place, running.socket);
  CHECK(ask_for_status(*client).ok());
  // Longer than a server that shuts down waits for the reactor.
  std::thread holding([&] { running.reactor.run([] { std::this_thread::sleep_for(2500ms); }); });
  std::this_thread::sleep_for(100ms);
  CHECK(ask_for_status(*client, 100ms).error_code() == grpc::StatusCode::DEADLINE_EXCEEDED);
  client.reset();
  std::this_thread::sleep_for(1s);
  CHECK(servers() == 1);
  holding.join();
  CHECK(eventually([] { return servers() == 0; }));
}

TEST_CASE("where a server would have no descriptors the connection is closed, and evictd goes on") {
  RunningServer running(resting_soon());
  const os::FileDescriptor connection(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(os::connect_to(connection.get(), running.socket) == 0);
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  {
    rlimit few{.rlim_cur = 512, .rlim_max = before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
    std::vector<os::FileDescriptor> taken;
    for (int number = ::dup(connection.get()); number >= 0; number = ::dup(connection.get()))
      taken.emplace_back(number);
    taken.resize(taken.size() - 8);  // gRPC would take some more
    REQUIRE(::send(connection.get(), greeting.data(), greeting.size(), 0) == static_cast<ssize_t>(greeting.size()));
    char byte = 0;
    CHECK(::recv(connection.get(), &byte, 1, 0) <= 0);
    taken.clear();
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  }
  CHECK(servers() == 0);
  CHECK(ask_for_status(Client(running.socket)).ok());
}

TEST_CASE("where a server would have no threads the connection is closed, and evictd goes on") {
  RunningServer running(resting_soon());
  const os::FileDescriptor connection(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(os::connect_to(connection.get(), running.socket) == 0);
  {
    const fixture::NoThreads none;
    REQUIRE(::send(connection.get(), greeting.data(), greeting.size(), 0) == static_cast<ssize_t>(greeting.size()));
    char byte = 0;
    CHECK(::recv(connection.get(), &byte, 1, 0) <= 0);
  }
  CHECK(servers() == 0);
  CHECK(ask_for_status(Client(running.socket)).ok());
}

TEST_CASE("a server that shuts down does so whether somebody was ever connected or not") {
  RunningServer never(resting_soon());
  RunningServer once(resting_soon());
  {
    const Client client(once.socket);
    CHECK(ask_for_status(client).ok());
  }
  CHECK(eventually([] { return servers() == 0; }));
  RunningServer now(resting_soon());
  const Client client(now.socket);
  CHECK(ask_for_status(client).ok());
}

}  // namespace evictd::api::standby_endpoint_test
