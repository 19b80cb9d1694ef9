#include "api/server.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <list>
#include <memory>

#include "api/raw_call.hpp"
#include "api/running_server.hpp"
#include "async/deadline_thread.hpp"
#include "fixture/leased_file.hpp"
#include "kube/certificates.hpp"

namespace evictd::api::server_test {
namespace {

struct NoStatus final : events::StatusSource {
  v1::NodeStatus status() override { return {}; }
};
NoStatus no_status;

using namespace std::chrono_literals;
using test::Client;
using test::eventually;
using test::new_events;
using test::raw_call;
using test::RawStream;
using test::Reactor;
using test::RunningServer;
using test::Subscriber;
using test::TemporaryDirectory;

grpc::Status get_status(const Client& client, v1::NodeStatus& status) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + test::patience);
  return client.stub->GetNodeStatus(&context, {}, &status);
}

/// grpc.health.v1.HealthCheckResponse on the wire.
const std::string serving{"\x08\x01", 2};
const std::string not_serving{"\x08\x02", 2};

std::string health(const Client& client, const std::string& service = "") {
  const std::string request =
      service.empty() ? "" : "\x0a" + std::string(1, static_cast<char>(service.size())) + service;
  return raw_call(client.channel, "/grpc.health.v1.Health/Check", request).bytes;
}

template <class Function>
std::chrono::steady_clock::duration time_of(Function function) {
  const auto start = std::chrono::steady_clock::now();
  function();
  return std::chrono::steady_clock::now() - start;
}

TEST_CASE("the node's status is asked for on the reactor, and the server adds the last event's number") {
  RunningServer running;
  running.node.set_version("1.2.3");
  running.append(4);
  v1::NodeStatus status;
  const auto result = get_status(Client(running.socket), status);
  CHECK_MESSAGE(result.ok(), result.error_message());
  CHECK(status.version() == "1.2.3");
  CHECK(status.last_event_sequence() == 4);
}

TEST_CASE("a pod may be asked about that is as large as containerd takes one") {
  const RunningServer running;
  const Client client(running.admin_socket);
  v1::AdmitRequest request;
  request.mutable_runtime()->set_sandbox_config(std::string(16 << 20, 'x'));
  v1::AdmitResponse response;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + test::patience);
  // It arrives, though nobody is there to answer it.
  CHECK(client.stub->Admit(&context, request, &response).error_code() == grpc::StatusCode::UNIMPLEMENTED);
}

TEST_CASE("health says SERVING only while it was told so") {
  RunningServer running;
  const Client client(running.socket);
  CHECK(health(client) == not_serving);
  CHECK(health(client, "evictd.v1.EvictionService") == not_serving);
  running.reactor.run([&] { running.server->set_serving(true); });
  CHECK(health(client) == serving);
  CHECK(health(client, "evictd.v1.EvictionService") == serving);
  running.reactor.run([&] { running.server->set_serving(false); });
  CHECK(health(client) == not_serving);
}

const std::string reflection = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
const std::string list_services = "\x3a\x01*";

TEST_CASE("reflection lists the services") {
  RunningServer running;
  const Client client(running.socket);
  const RawStream listing(client.channel, reflection, list_services);
  for (const std::string service : {"evictd.v1.EvictionService", "grpc.health.v1.Health"})
    CHECK_MESSAGE(listing.reply.find(service) != std::string::npos, service);
}

TEST_CASE("however many keep reflection open, few threads wait for them, and all else is answered") {
  RunningServer running;
  const Client client(running.socket);
  std::list<RawStream> streams;
  streams.emplace_back(client.channel, reflection, list_services);
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
  };
  const auto before = threads();
  for (int i = 0; i < 64; ++i) streams.emplace_back(client.channel, reflection, list_services);
  CHECK(threads() <= before + 16);
  CHECK(std::ranges::count_if(streams, [](const auto& stream) { return !stream.reply.empty(); }) == 4);
  CHECK(raw_call(client.channel, reflection, list_services).status.error_code() ==
        grpc::StatusCode::RESOURCE_EXHAUSTED);
  v1::NodeStatus status;
  CHECK(get_status(client, status).ok());
  CHECK(health(client) == not_serving);
  streams.clear();
  CHECK(eventually([&] { return !RawStream(client.channel, reflection, list_services).reply.empty(); }));
}

TEST_CASE("the socket is open to its owner and group only, and gone after the shutdown") {
  RunningServer running({.group = std::to_string(::getegid())});
  struct stat status{};
  REQUIRE(::stat(running.socket.c_str(), &status) == 0);
  CHECK(S_ISSOCK(status.st_mode));
  CHECK((status.st_mode & 07777) == 0660);
  CHECK(status.st_gid == ::getegid());
  running.reactor.run([&] { running.server->shutdown(); });
  CHECK_FALSE(std::filesystem::exists(running.socket));
}

TEST_CASE("a second server on a living socket is refused and does the first no harm") {
  RunningServer first;
  Server second({.socket = first.socket}, first.log, {.status = no_status});
  const auto refused = second.start();
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message ==
        "evictd.sock: " + first.socket +
            ": somebody answers on it already (another evictd?): stop it, or choose another path");
  v1::NodeStatus status;
  CHECK(get_status(Client(first.socket), status).ok());
}

TEST_CASE("a socket left by a dead server is replaced") {
  const TemporaryDirectory directory;
  const auto path = directory / "s";
  Reactor reactor;
  events::EventLog log(reactor.context.get_executor());
  {
    // A server that never removes its socket: the path is moved away while it lives, as a crash would leave it.
    Server dead({.socket = path}, log, {.status = no_status});
    REQUIRE(dead.start().has_value());
    std::filesystem::rename(path, directory / "left");
  }
  std::filesystem::rename(directory / "left", path);
  RunningServer running({.socket = path});
  v1::NodeStatus status;
  CHECK(get_status(Client(path), status).ok());
}

TEST_CASE("a server that cannot start says why, and names the key") {
  boost::asio::io_context reactor;
  events::EventLog log(reactor.get_executor());
  const TemporaryDirectory directory;
  const auto error_of = [&](ServerOptions options) {
    Server server(std::move(options), log, {.status = no_status});
    const auto started = server.start();
    return started ? "" : started.error().message;
  };
  CHECK(error_of({.socket = directory / "missing/s"}) == "evictd.sock: " + (directory / "missing/s") +
                                                             ": the directory " + (directory / "missing") +
                                                             " does not exist: create it");
  CHECK(error_of({.socket = directory / "s", .group = "no-such-group-here"}) ==
        "api.group: group \"no-such-group-here\": there is no such group on this machine: create it with groupadd "
        "--system");
  CHECK_FALSE(std::filesystem::exists(directory / "s"));
}

TEST_CASE("a shutdown ends open streams at once and says why") {
  RunningServer running;
  const Client client(running.socket);
  std::vector<std::unique_ptr<Subscriber>> subscribers;
  for (int i = 0; i < 5; ++i) subscribers.push_back(std::make_unique<Subscriber>(*client.stub, new_events()));
  running.append(1);
  const auto took = time_of([&] { running.reactor.run([&] { running.server->shutdown(test::patience); }); });
  CHECK(took < test::patience / 4);
  for (const auto& subscriber : subscribers) {
    const auto status = subscriber->finish();
    CHECK(status.error_code() == grpc::StatusCode::UNAVAILABLE);
    CHECK(status.error_message() == "evictd shuts down");
  }
  CHECK(running.subscribers() == 0);
  running.append(1);  // the log goes on
  running.reactor.run([&] { running.server->shutdown(); });
}

TEST_CASE("a shutdown waits no longer than it was told for a peer that takes nothing and for a health watch") {
  RunningServer running({.write_timeout = test::patience});
  const Client client(running.socket);
  const RawStream watch(client.channel, "/grpc.health.v1.Health/Watch", "");
  CHECK(watch.reply == not_serving);
  Subscriber stuck(*client.stub, new_events());
  running.append(400, 32 * 1024);
  const auto took = time_of([&] { running.reactor.run([&] { running.server->shutdown(100ms); }); });
  CHECK(took < test::patience / 4);
  CHECK_FALSE(stuck.finish().ok());
}

TEST_CASE("a shutdown ends calls that the reactor never came to answer") {
  boost::asio::io_context reactor{1};  // it never turns
  events::EventLog log(reactor.get_executor());
  const TemporaryDirectory directory;
  Server server({.socket = directory / "s"}, log, {.status = no_status});
  REQUIRE(server.start().has_value());
  const Client client(directory / "s");
  CHECK(health(client) == not_serving);  // the connection stands

  auto asks = std::async(std::launch::async, [&] {
    v1::NodeStatus status;
    return get_status(client, status);
  });
  auto subscribes = std::async(std::launch::async, [&] { return Subscriber(*client.stub, new_events()).finish(); });
  std::this_thread::sleep_for(200ms);  // both calls most likely wait by now; the outcome is the same if they do not
  const auto took = time_of([&] { server.shutdown(test::patience); });
  CHECK(took < test::patience / 4);
  CHECK(asks.get().error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(subscribes.get().error_code() == grpc::StatusCode::UNAVAILABLE);

  reactor.poll();  // what was posted before finds nobody
  CHECK(log.subscribers() == 0);
}

TEST_CASE("certificate files on a disk that hangs do not hold up the end of the server") {
  const test::Authority authority;
  const auto issued = authority.issue();
  const TemporaryDirectory files;
  std::ofstream{files / "server.pem"} << issued.certificate;
  std::ofstream{files / "server.key"} << issued.key;
  std::ofstream{files / "clients.pem"} << authority.certificate();
  ServerOptions options;
  options.tcp = TcpOptions{.address = {"127.0.0.1", "0"},
                           .tls = {.certificate_file = files / "server.pem",
                                   .key_file = files / "server.key",
                                   .client_ca_file = files / "clients.pem",
                                   .admins = {},
                                   .readers = {}}};
  RunningServer running{options};
  fixture::LeasedFile key{files / "server.key"};
  REQUIRE(eventually([&] { return key.take(); }));
  REQUIRE(eventually([&] { return key.has_reader(); }));  // gRPC reads it again

  auto ended = std::async(std::launch::async, [&] { running.reactor.run([&] { running.server->shutdown(); }); });
  CHECK(ended.wait_for(15s) == std::future_status::ready);
  key.release();
  ended.wait();
  CHECK(eventually([] { return async::left_behind().empty(); }));
}

}  // namespace
}  // namespace evictd::api::server_test
