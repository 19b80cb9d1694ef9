#include "proxy/forwarded_call.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <random>
#include <thread>

#include "proxy/proxied.hpp"

namespace evictd::proxy::forwarded_call_test {
namespace {

using namespace std::chrono_literals;
using test::Exchanged;
using test::Metadata;
using test::Proxied;
using test::RawClientCall;
using test::RawServerCall;

/// Sends each message back as it comes, until the client has no more.
grpc::Status echo(RawServerCall& call) {
  while (const auto message = call.read()) call.write(*message);
  return grpc::Status::OK;
}

std::string random_bytes(std::mt19937_64& random, std::size_t size) {
  std::string bytes(size, '\0');
  for (auto& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

/// Only what a test put in: gRPC adds its own to it.
Metadata own(Metadata headers) {
  std::erase_if(headers, [](const auto& header) { return !header.first.starts_with("x-"); });
  return headers;
}

const std::string any_method = "/any.Service/Method";

TEST_CASE("a unary call's messages arrive as the bytes they are, whatever their size") {
  Proxied proxied{echo};
  std::mt19937_64 random{1};
  for (int round = 0; round < 200; ++round) {
    const auto bytes = random_bytes(random, round == 0 ? 0 : random() % (1 << (round % 18)));
    const auto answer = proxied.exchange(any_method, bytes);
    REQUIRE(answer.status.ok());
    REQUIRE(answer.messages.size() == 1);
    REQUIRE(answer.messages[0] == bytes);
  }
}

TEST_CASE("messages of 20 MiB pass both ways") {
  Proxied proxied{echo};
  std::mt19937_64 random{2};
  const auto bytes = random_bytes(random, 20 << 20);
  const auto answer = proxied.exchange(any_method, bytes);
  CHECK(answer.status.error_message() == "");
  REQUIRE(answer.messages.size() == 1);
  CHECK(answer.messages[0] == bytes);
}

TEST_CASE("a server's stream arrives whole and in order, whatever its status") {
  for (const auto code : {grpc::StatusCode::OK, grpc::StatusCode::ABORTED}) {
    Proxied proxied{[code](RawServerCall& call) {
      call.read();
      for (int i = 0; i < 2000; ++i) call.write(std::to_string(i));
      return grpc::Status(code, code == grpc::StatusCode::OK ? "" : "enough");
    }};
    const auto answer = proxied.exchange(any_method, "");
    CHECK(answer.status.error_code() == code);
    REQUIRE(answer.messages.size() == 2000);
    for (int i = 0; i < 2000; ++i) REQUIRE(answer.messages[static_cast<std::size_t>(i)] == std::to_string(i));
  }
}

TEST_CASE("a client's stream arrives whole, and its half-close only when the client has no more") {
  std::atomic<bool> half_closed = false;
  Proxied proxied{[&](RawServerCall& call) {
    std::string all;
    while (const auto message = call.read()) {
      all += *message;
      call.write("got " + *message);
    }
    half_closed = !call.is_cancelled();
    call.write(all);
    return grpc::Status::OK;
  }};
  RawClientCall call{proxied.channel, any_method};
  for (const std::string message : {"a", "", "c"}) {
    CHECK(call.write(message));
    CHECK(call.read() == "got " + message);
  }
  CHECK_FALSE(half_closed);
  CHECK(call.writes_done());
  CHECK(call.read() == "ac");
  CHECK(half_closed);
  CHECK(call.read() == std::nullopt);
  CHECK(call.finish().ok());
}

TEST_CASE("a client's half-close without a message arrives as such") {
  Proxied proxied{[](RawServerCall& call) {
    return call.read() || call.is_cancelled() ? grpc::Status::OK
                                              : grpc::Status(grpc::StatusCode::INTERNAL, "EOF without a message");
  }};
  RawClientCall call{proxied.channel, any_method};
  CHECK(call.writes_done());
  CHECK(call.read() == std::nullopt);
  CHECK(call.finish().error_message() == "EOF without a message");
}

TEST_CASE("a runtime that has said all ends a call whose client has not") {
  Proxied proxied{[](RawServerCall& call) {
    call.read();
    call.write("enough");
    return grpc::Status(grpc::StatusCode::OUT_OF_RANGE, "no more");
  }};
  for (int round = 0; round < 50; ++round) {
    RawClientCall call{proxied.channel, any_method};
    call.write("1");
    CHECK(call.read() == "enough");
    CHECK(call.read() == std::nullopt);
    CHECK(call.finish().error_message() == "no more");
  }
}

TEST_CASE("metadata passes both ways, binary and repeated, and the initial one before any message") {
  Metadata seen;
  std::promise<void> headers_read;
  Proxied proxied{[&](RawServerCall& call) {
    seen = own(call.metadata());
    call.add_initial_metadata({{"x-initial", "1"}, {"x-initial-bin", std::string("\0\xff\x01", 3)}});
    call.add_trailing_metadata({{"x-trailing", "a"}, {"x-trailing", "b"}, {"x-trailing-bin", std::string("\0", 1)}});
    call.send_initial_metadata();
    headers_read.get_future().wait();  // nothing else is sent before the client has them
    return grpc::Status::OK;
  }};
  const Metadata sent{{"x-a", "1"}, {"x-a", "2"}, {"x-b-bin", std::string("\x80\0z", 3)}};
  RawClientCall call{proxied.channel, any_method, {.metadata = sent}};
  CHECK(own(call.initial_metadata()) == Metadata{{"x-initial", "1"}, {"x-initial-bin", std::string("\0\xff\x01", 3)}});
  headers_read.set_value();
  CHECK(call.read() == std::nullopt);
  CHECK(call.finish().ok());
  CHECK(own(call.trailing_metadata()) ==
        Metadata{{"x-trailing", "a"}, {"x-trailing", "b"}, {"x-trailing-bin", std::string("\0", 1)}});
  CHECK(seen == sent);
}

TEST_CASE("a status passes with its code, message and details") {
  const std::string details{"\x08\x05\0\xff details", 12};
  const std::string long_message(100'000, 'x');
  for (const auto& status :
       {grpc::Status(grpc::StatusCode::NOT_FOUND, "no such sandbox: ä\n%", details),
        grpc::Status(grpc::StatusCode::UNKNOWN, ""), grpc::Status(grpc::StatusCode::INTERNAL, long_message)}) {
    for (const bool after_a_message : {false, true}) {
      Proxied proxied{[&](RawServerCall& call) {
        call.read();
        call.add_trailing_metadata({{"x-trailing", "t"}});
        if (after_a_message) call.write("m");
        return status;
      }};
      const auto through = proxied.exchange(any_method, "");
      const auto directly = test::exchange(test::raw_channel(proxied.runtime_socket), any_method, "");
      CHECK(through.status.error_code() == directly.status.error_code());
      CHECK(through.status.error_message() == status.error_message());
      CHECK(through.status.error_details() == status.error_details());
      CHECK(through.messages == directly.messages);
      CHECK(through.trailing == directly.trailing);
      CHECK(own(through.trailing) == Metadata{{"x-trailing", "t"}});
    }
  }
}

TEST_CASE("a deadline passes, and there is none where the client has none") {
  std::optional<std::chrono::milliseconds> left;
  Proxied proxied{[&](RawServerCall& call) {
    left = call.time_left();
    return echo(call);
  }};
  CHECK(proxied.exchange(any_method, "", {.time = 40s}).status.ok());
  REQUIRE(left);
  CHECK(*left <= 41s);  // gRPC rounds a deadline up to three digits on its way
  CHECK(*left > 5s);
  CHECK(proxied.exchange(any_method, "", {.time = std::nullopt}).status.ok());
  CHECK_FALSE(left);
}

TEST_CASE("a deadline that passes ends the call on both sides") {
  std::promise<bool> cancelled;
  Proxied proxied{[&](RawServerCall& call) {
    if (call.method() != any_method) return echo(call);
    call.read();
    cancelled.set_value(call.wait_until_cancelled());
    return grpc::Status::CANCELLED;
  }};
  CHECK(proxied.exchange("/any/Before", "").status.ok());  // who connects within its deadline may miss it
  CHECK(proxied.exchange(any_method, "", {.time = 2s}).status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED);
  auto on_the_other_side = cancelled.get_future();
  REQUIRE(on_the_other_side.wait_for(60s) == std::future_status::ready);
  CHECK(on_the_other_side.get());
}

TEST_CASE("a client that cancels, or goes, cancels the runtime's call") {
  std::promise<void> reached;
  std::promise<bool> cancelled;
  Proxied proxied{[&](RawServerCall& call) {
    call.read();
    call.write("here");
    reached.set_value();
    cancelled.set_value(call.wait_until_cancelled());
    return grpc::Status::CANCELLED;
  }};
  for (const bool goes : {false, true}) {
    reached = {};
    cancelled = {};
    {
      auto channel = test::raw_channel(proxied.socket);
      RawClientCall call{channel, any_method};
      call.write("");
      CHECK(call.read() == "here");
      reached.get_future().wait();
      if (!goes) {
        call.cancel();
        CHECK(call.read() == std::nullopt);
        CHECK(call.finish().error_code() == grpc::StatusCode::CANCELLED);
      }
    }
    CHECK(cancelled.get_future().get());
  }
}

TEST_CASE("a runtime that cancels ends the client's call so") {
  Proxied proxied{[](RawServerCall& call) {
    call.read();
    return grpc::Status(grpc::StatusCode::CANCELLED, "by the runtime");
  }};
  const auto answer = proxied.exchange(any_method, "");
  CHECK(answer.status.error_code() == grpc::StatusCode::CANCELLED);
  CHECK(answer.status.error_message() == "by the runtime");
}

TEST_CASE("a hundred streams at once do not hold each other up") {
  Proxied proxied{echo};
  // All are open at the same time before any goes on.
  std::vector<std::unique_ptr<RawClientCall>> calls;
  for (int i = 0; i < 100; ++i) calls.push_back(std::make_unique<RawClientCall>(proxied.channel, any_method));
  for (int round = 0; round < 20; ++round) {
    for (std::size_t i = 0; i < calls.size(); ++i)
      REQUIRE(calls[i]->write(std::to_string(i * 1000 + static_cast<std::size_t>(round))));
    for (std::size_t i = calls.size(); i-- > 0;)
      REQUIRE(calls[i]->read() == std::to_string(i * 1000 + static_cast<std::size_t>(round)));
  }
  for (auto& call : calls) {
    CHECK(call->writes_done());
    CHECK(call->read() == std::nullopt);
    CHECK(call->finish().ok());
  }
  CHECK(proxied.runtime().calls() == 100);
}

TEST_CASE("whoever does not read makes the other side wait, and nobody else") {
  std::atomic<int> written = 0;
  Proxied proxied{[&](RawServerCall& call) {
    if (call.method() != any_method) return echo(call);
    const std::string message(100'000, 'x');
    while (call.write(message)) ++written;
    return grpc::Status::OK;
  }};
  RawClientCall stalled{proxied.channel, any_method};
  REQUIRE(stalled.read().has_value());  // it flows
  // Until nothing moves for a while: then all that is on its way is what the three processes' windows hold.
  for (int before = -1; before != written;) {
    before = written;
    for (int i = 0; i < 20; ++i) CHECK(proxied.exchange("/other.Service/Method", "1").messages.size() == 1);
    std::this_thread::sleep_for(100ms);
  }
  CHECK(written < 200);
  for (int i = 0; i < 300; ++i) REQUIRE(stalled.read().has_value());  // and it flows again
}

TEST_CASE("calls end as unavailable while the runtime is away, and go through once it is back") {
  Proxied proxied{echo};
  CHECK(proxied.exchange(any_method, "1").status.ok());
  for (int round = 0; round < 3; ++round) {
    RawClientCall open{proxied.channel, any_method};
    open.write("1");
    CHECK(open.read() == "1");
    proxied.stop_runtime();
    CHECK(open.read() == std::nullopt);
    CHECK_FALSE(open.finish().ok());
    CHECK(proxied.exchange(any_method, "1").status.error_code() == grpc::StatusCode::UNAVAILABLE);
    proxied.start_runtime();
    const auto end = std::chrono::steady_clock::now() + 60s;
    Exchanged answer;
    do {
      answer = proxied.exchange(any_method, "2");
    } while (!answer.status.ok() && std::chrono::steady_clock::now() < end);
    CHECK(answer.status.ok());
    CHECK(answer.messages == std::vector<std::string>{"2"});
  }
}

TEST_CASE("every method is the runtime's to answer, also what servers of ours would") {
  Proxied proxied{[](RawServerCall& call) {
    return grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "unknown method " + call.method());
  }};
  for (const std::string method :
       {"/runtime.v1.RuntimeService/GetContainerEvents", "/nobody.Knows/It", "/grpc.health.v1.Health/Check",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"}) {
    const auto answer = proxied.exchange(method, "");
    CHECK(answer.status.error_code() == grpc::StatusCode::UNIMPLEMENTED);
    CHECK(answer.status.error_message() == "unknown method " + method);
  }
}

}  // namespace
}  // namespace evictd::proxy::forwarded_call_test
