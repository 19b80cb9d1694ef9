#include "proxy/server.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "proxy/proxied.hpp"

namespace evictd::proxy::server_test {
namespace {

using namespace std::chrono_literals;
using test::Proxied;
using test::RawClientCall;
using test::RawServerCall;

grpc::Status answer_at_once(RawServerCall& call) {
  call.read();
  call.write("answer");
  return grpc::Status::OK;
}

TEST_CASE("the socket is its owner's alone") {
  Proxied proxied{answer_at_once};
  struct stat status{};
  REQUIRE(::stat(proxied.socket.c_str(), &status) == 0);
  CHECK(S_ISSOCK(status.st_mode));
  CHECK((status.st_mode & 0777) == 0600);
}

TEST_CASE("a socket that somebody answers on is not taken, and one of the dead is") {
  Proxied proxied{answer_at_once};
  const ServerOptions same{.socket = proxied.socket, .runtime = "unix://" + proxied.runtime_socket, .gate = {}};
  {
    Server second{same};
    const auto started = second.start();
    REQUIRE_FALSE(started.has_value());
    CHECK(started.error().message.starts_with(proxied.socket + ": somebody answers on it already"));
  }
  CHECK(proxied.exchange("/any.Service/Method", "").status.ok());

  proxied.server().shutdown(0ms);
  CHECK_FALSE(std::filesystem::exists(proxied.socket));
  std::ofstream{proxied.socket};  // whatever stands there and is no socket stays
  CHECK_FALSE(Server{same}.start().has_value());
  std::filesystem::remove(proxied.socket);
  Server third{same};
  CHECK(third.start().has_value());
}

TEST_CASE("at the end calls under way may end by themselves, new ones are refused") {
  std::promise<void> reached;
  std::promise<void> go_on;
  Proxied proxied{[&](RawServerCall& call) {
    call.read();
    if (call.method() != "/any.Service/Slow") return grpc::Status::OK;
    reached.set_value();
    go_on.get_future().wait();
    call.write("late");
    return grpc::Status::OK;
  }};
  auto answer = std::async(std::launch::async, [&] { return proxied.exchange("/any.Service/Slow", ""); });
  reached.get_future().wait();
  auto down = std::async(std::launch::async, [&] { proxied.server().shutdown(60s); });
  // From some time on no other call gets through.
  while (proxied.exchange("/any.Service/New", "").status.error_message() != "evictd cri-proxy shuts down") {
  }
  CHECK(test::exchange(test::raw_channel(proxied.socket), "/any.Service/New", "").status.error_code() ==
        grpc::StatusCode::UNAVAILABLE);
  go_on.set_value();
  const auto late = answer.get();
  CHECK(late.status.error_message() == "");
  CHECK(late.status.ok());
  CHECK(late.messages == std::vector<std::string>{"late"});
  down.get();
  CHECK_FALSE(std::filesystem::exists(proxied.socket));
}

TEST_CASE("a stream without end is cut off when the patience is over") {
  std::promise<bool> cancelled;
  Proxied proxied{[&](RawServerCall& call) {
    call.write("event");
    cancelled.set_value(call.wait_until_cancelled());
    return grpc::Status::CANCELLED;
  }};
  RawClientCall call{proxied.channel, "/any.Service/Events"};
  CHECK(call.read() == "event");
  proxied.server().shutdown(50ms);
  CHECK(cancelled.get_future().get());
  CHECK(call.read() == std::nullopt);
  CHECK_FALSE(call.finish().ok());
}

}  // namespace
}  // namespace evictd::proxy::server_test
