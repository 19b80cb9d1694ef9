#include "rpc/connection.hpp"

#include <doctest/doctest.h>
#include <grpcpp/support/status.h>
#include <sys/socket.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "api/temporary_directory.hpp"
#include "cri/run.hpp"
#include "rpc/call.hpp"
#include "rpc/message_reader.hpp"
#include "rpc/played_server.hpp"

namespace evictd::rpc::connection_test {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using test::Frame;
using test::PlayedServer;
namespace frame_type = test::frame_type;

/// A server that the test plays, byte by byte, and a client of it. The calls of the client have numbers 1, 3, 5, …
struct Scene {
  PlayedServer server;
  asio::io_context reactor{1};
  std::shared_ptr<Connection> connection = Connection::begin(reactor.get_executor(), server.take_client_end());
  static constexpr std::size_t largest = 1000;

  Scene() { server.greet(); }
  ~Scene() { connection->close(); }

  /// Begins a call, and waits until the server has it.
  std::shared_ptr<std::optional<Answer>> ask(std::string question = "?",
                                             std::chrono::milliseconds deadline = test::patience) {
    auto answer = std::make_shared<std::optional<Answer>>();
    const int before = server.count(frame_type::headers);
    asio::co_spawn(reactor, call(connection, "/a.Service/Method", std::move(question), deadline, largest),
                   [answer](const std::exception_ptr&, Answer result) { *answer = std::move(result); });
    REQUIRE(until([&] { return server.count(frame_type::headers) > before; }));
    return answer;
  }
  Answer end_of(const std::shared_ptr<std::optional<Answer>>& answer) {
    REQUIRE(until([&] { return answer->has_value(); }));
    return **answer;
  }

  /// The server reads as well.
  template <class Done>
  bool until(Done done) {
    return test::run_until(reactor, [&] {
      if (reads) server.receive();
      return done();
    });
  }
  bool reads = true;

  void answer(std::uint32_t stream, std::string_view message) {
    server.send_headers(stream, {{":status", "200"}, {"content-type", "application/grpc"}});
    server.send_data(stream, framed(message));
    server.send_headers(stream, {{"grpc-status", "0"}}, true);
  }
};

}  // namespace

TEST_CASE("a call goes out with its question and its deadline, and brings the answer") {
  Scene s;
  const auto answer = s.ask("a question");
  s.answer(1, "an answer");
  const auto got = s.end_of(answer);
  CHECK(got.status.ok());
  CHECK(got.message == "an answer");
  REQUIRE(s.until([&] { return s.server.count(frame_type::data) == 1; }));
  for (const auto& frame : s.server.frames())
    if (frame.type == frame_type::data) CHECK(frame.payload == framed("a question"));
}

TEST_CASE("an answer that comes in pieces of any size is put together") {
  Scene s;
  const auto answer = s.ask();
  s.server.send_headers(1, {{":status", "200"}});
  for (const char byte : framed("piecewise")) s.server.send_data(1, std::string(1, byte));
  s.server.send_headers(1, {{"grpc-status", "0"}}, true);
  CHECK(s.end_of(answer).message == "piecewise");
}

TEST_CASE("what the server says of a call is its end") {
  Scene s;
  const auto answer = s.ask();
  SUBCASE("an error, in words that may be encoded") {
    s.server.send_headers(1, {{":status", "200"}, {"grpc-status", "5"}, {"grpc-message", "no %22c1%22"}}, true);
    const auto got = s.end_of(answer).status;
    CHECK(got.error_code() == grpc::StatusCode::NOT_FOUND);
    CHECK(got.error_message() == "no \"c1\"");
  }
  SUBCASE("no answer with it, though all is well") {
    s.server.send_headers(1, {{":status", "200"}, {"grpc-status", "0"}}, true);
    CHECK(s.end_of(answer).status.error_code() == grpc::StatusCode::INTERNAL);
  }
  SUBCASE("within a message") {
    s.server.send_headers(1, {{":status", "200"}});
    s.server.send_data(1, framed("half a message").substr(0, 9));
    s.server.send_headers(1, {{"grpc-status", "0"}}, true);
    CHECK(s.end_of(answer).status.error_code() == grpc::StatusCode::INTERNAL);
  }
  SUBCASE("two answers") {
    s.server.send_headers(1, {{":status", "200"}});
    s.server.send_data(1, framed("one") + framed("two"));
    CHECK(s.end_of(answer).status.error_code() == grpc::StatusCode::INTERNAL);
    CHECK(s.until([&] { return s.server.count(frame_type::rst_stream) == 1; }));
  }
  SUBCASE("a reset") {
    s.server.send({.type = frame_type::rst_stream, .stream = 1, .payload = test::big_endian(7)});  // REFUSED_STREAM
    CHECK(s.end_of(answer).status.error_code() == grpc::StatusCode::UNAVAILABLE);
  }
  SUBCASE("nothing of gRPC") {
    s.server.send_headers(1, {{":status", "503"}}, true);
    CHECK(s.end_of(answer).status.error_code() == grpc::StatusCode::UNAVAILABLE);
  }
  // The connection is as good as before.
  const auto next = s.ask();
  s.answer(3, "next");
  CHECK(s.end_of(next).message == "next");
}

TEST_CASE("of an answer that is too large only its length is read") {
  Scene s;
  const auto answer = s.ask();
  s.server.send_headers(1, {{":status", "200"}});
  s.server.send_data(1, framed(std::string(Scene::largest + 1, 'x')).substr(0, 5));
  const auto got = s.end_of(answer).status;
  CHECK(got.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
  CHECK(got.error_message() == "a message of 1001 bytes, where 1000 are taken at most");
  CHECK(s.until([&] { return s.server.count(frame_type::rst_stream) == 1; }));
  s.server.send_data(1, std::string(900, 'x'));  // it was on its way

  const auto next = s.ask();
  s.answer(3, std::string(Scene::largest, 'y'));
  CHECK(s.end_of(next).message.size() == Scene::largest);
}

TEST_CASE("a deadline and a cancelled coroutine end the call at the server as well") {
  Scene s;
  SUBCASE("deadline") {
    const auto got = s.end_of(s.ask("?", 100ms)).status;
    CHECK(got.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED);
  }
  SUBCASE("cancelled") {
    asio::cancellation_signal cancel;
    std::optional<Answer> answer;
    asio::co_spawn(s.reactor, call(s.connection, "/a.Service/Method", "?", test::patience, Scene::largest),
                   asio::bind_cancellation_slot(
                       cancel.slot(), [&](const std::exception_ptr&, Answer result) { answer = std::move(result); }));
    REQUIRE(s.until([&] { return s.server.count(frame_type::headers) == 1; }));
    cancel.emit(asio::cancellation_type::terminal);
    REQUIRE(s.until([&] { return answer.has_value(); }));
    CHECK(answer->status.error_code() == grpc::StatusCode::CANCELLED);
  }
  CHECK(s.until([&] { return s.server.count(frame_type::rst_stream) == 1; }));
  CHECK(s.connection->is_open());
}

TEST_CASE("a server that breaks the connection ends all calls, and new ones at once") {
  Scene s;
  const auto first = s.ask();
  const auto second = s.ask();
  bool is_lost = false;
  asio::co_spawn(s.reactor, s.connection->until_lost(), [&](const std::exception_ptr&) { is_lost = true; });
  std::string why;
  SUBCASE("by going") {
    s.server.close();
    s.reads = false;
    why = "has closed the connection";
  }
  SUBCASE("by what is no HTTP/2") {
    s.server.send("HTTP/1.1 400 Bad Request\r\n\r\n");
    why = "breaks the rules of HTTP/2";
  }
  SUBCASE("by a frame that is larger than frames are") {
    s.server.send(std::string("\xff\xff\xff\0\0\0\0\0\1", 9));
    why = "breaks the rules of HTTP/2";
  }
  SUBCASE("by data of a call that there is not") {
    s.server.send_data(99, "?");
    why = "breaks the rules of HTTP/2";
  }
  for (const auto& answer : {first, second}) {
    const auto status = s.end_of(answer).status;
    CHECK(status.error_code() == grpc::StatusCode::UNAVAILABLE);
    CHECK_MESSAGE(status.error_message().find(why) != std::string::npos, status.error_message());
  }
  CHECK(s.until([&] { return is_lost; }));
  CHECK_FALSE(s.connection->is_open());
  CHECK(s.connection->has_ended());
  const auto after = test::run(s.reactor, call(s.connection, "/a.Service/Method", "?", test::patience, 10));
  CHECK(after.status.error_code() == grpc::StatusCode::UNAVAILABLE);
}

TEST_CASE("a server that says that it goes answers what it has taken, and takes no more") {
  Scene s;
  const auto first = s.ask();
  const auto second = s.ask();
  s.server.send({.type = frame_type::goaway, .payload = test::big_endian(1) + test::big_endian(0)});
  CHECK(s.end_of(second).status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK_FALSE(s.connection->is_open());
  CHECK_FALSE(s.connection->has_ended());
  const auto third = test::run(s.reactor, call(s.connection, "/a.Service/Method", "?", test::patience, 10));
  CHECK(third.status.error_code() == grpc::StatusCode::UNAVAILABLE);
  s.answer(1, "the last");
  CHECK(s.end_of(first).message == "the last");
  CHECK(s.until([&] { return s.connection->has_ended(); }));
}

TEST_CASE("a server that has gone while nobody looked is known to be gone by a look") {
  Scene s;
  s.server.close();
  CHECK(s.connection->is_open());
  s.connection->read();
  CHECK(s.connection->has_ended());
  const auto exchange = open_stream(*s.connection, "/a.Service/Method", "?", 10);
  REQUIRE(exchange->ended);
  CHECK(exchange->ended->error_code() == grpc::StatusCode::UNAVAILABLE);
}

TEST_CASE("what a server still says counts where it takes nothing any more") {
  Scene s;
  const auto answer = s.ask();
  REQUIRE(::shutdown(s.server.socket(), SHUT_RD) == 0);
  s.reads = false;
  s.server.send({.type = frame_type::ping, .payload = "12345678"});  // which the client cannot answer
  REQUIRE(s.until([&] { return !s.connection->is_open(); }));
  CHECK_FALSE(answer->has_value());
  s.answer(1, "the last");
  CHECK(s.end_of(answer).message == "the last");
  s.server.close();
  CHECK(s.until([&] { return s.connection->has_ended(); }));
}

TEST_CASE("what a server says of a call before it has all of the question is the call's end") {
  Scene s;
  s.server.send({.type = frame_type::settings, .payload = std::string("\0\4\0\0\0\0", 6)});  // no room for any data
  REQUIRE(s.until([&] { return s.server.count(frame_type::settings) == 3; }));
  const auto answer = s.ask();
  s.server.send_headers(1, {{":status", "200"}, {"grpc-status", "5"}}, true);
  CHECK(s.end_of(answer).status.error_code() == grpc::StatusCode::NOT_FOUND);
  CHECK(s.until([&] { return s.server.count(frame_type::rst_stream) == 1; }));
  CHECK(s.server.count(frame_type::data) == 0);
}

TEST_CASE("what is left of calls that a server never reads ends with its connection") {
  Scene s;
  s.reads = false;
  int calls = 0;
  for (; calls < 100'000 && s.connection->is_open(); ++calls)
    s.connection->cancel(open_stream(*s.connection, "/a.Service/Method", "?", 10));
  CHECK_FALSE(s.connection->is_open());
  CHECK(calls > 1000);
}

TEST_CASE("a server that does not read costs a call its deadline, and gets all once it reads") {
  Scene s;
  s.server.send({.type = frame_type::window_update, .payload = test::big_endian(1 << 28)});
  s.server.send({.type = frame_type::settings, .payload = std::string("\0\4", 2) + test::big_endian(1 << 28)});
  REQUIRE(s.until([&] { return s.server.count(frame_type::settings) == 3; }));  // ours, and that it has both of theirs
  s.reads = false;
  const std::string large(8 << 20, 'x');
  std::optional<Answer> late;
  asio::co_spawn(s.reactor, call(s.connection, "/a.Service/Method", large, 300ms, Scene::largest),
                 [&](const std::exception_ptr&, Answer result) { late = std::move(result); });
  REQUIRE(s.until([&] { return late.has_value(); }));
  CHECK(late->status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED);
  CHECK(s.connection->is_open());

  s.reads = true;
  const auto answer = s.ask(large);
  REQUIRE(s.until([&] { return s.server.frames().back().stream == 3; }));
  s.answer(3, "all of it");
  CHECK(s.end_of(answer).message == "all of it");
}

TEST_CASE("a server that asks without end for signs of life, and takes none, is not given them") {
  Scene s;
  REQUIRE(s.until([&] { return s.server.count(frame_type::settings) == 2; }));
  s.reads = false;
  const auto sends_pings = [&] {
    std::string pings;
    for (int i = 0; i < 100; ++i) pings += std::string("\0\0\x8\6\0\0\0\0\0", 9) + "12345678";
    return ::send(s.server.socket(), pings.data(), pings.size(), MSG_NOSIGNAL) >= 0 || errno == EAGAIN;
  };
  // It breaks the connection: what is to be said would grow without end.
  CHECK(s.until([&] { return !sends_pings(); }));
  CHECK_FALSE(s.connection->is_open());
}

TEST_CASE("a stream brings its messages one after the other, and the server waits where nobody takes them") {
  Scene s;
  const auto stream = open_stream(*s.connection, "/a.Service/Method", "?", 1 << 20);
  const auto next = [&] { return test::run(s.reactor, next_message(s.connection, stream)); };
  s.server.send({.type = frame_type::settings, .flags = 0x1});  // the client's are taken, and with them its window
  s.server.send_headers(1, {{":status", "200"}});
  s.server.send_data(1, framed("one") + framed("two") + framed(""));
  CHECK(next() == "one");
  CHECK(next() == "two");
  CHECK(next() == "");

  // 16 KiB a frame: half the window is given back at once where messages are taken.
  const auto room = [&] {
    s.until([&] { return s.reactor.poll() == 0; });
    return s.server.count(frame_type::window_update);
  };
  const int before = room();
  for (int i = 0; i < 12; ++i) s.server.send_data(1, framed(std::string(16'000, 'x')));
  CHECK(room() == before);
  s.server.send_headers(1, {{"grpc-status", "0"}}, true);
  for (int i = 0; i < 12; ++i) {
    const auto message = next();
    REQUIRE_MESSAGE(message, stream->ended->error_message());
    CHECK(message->size() == 16'000);
  }
  CHECK(next() == std::nullopt);
  REQUIRE(stream->ended);
  CHECK(stream->ended->ok());
}

TEST_CASE("a message of a stream may be larger than what the server may send without being given room") {
  Scene s;
  const auto stream = open_stream(*s.connection, "/a.Service/Method", "?", 4 << 20);
  s.server.send({.type = frame_type::settings, .flags = 0x1});
  s.server.send_headers(1, {{":status", "200"}});
  constexpr std::int64_t window = 1 << 20;  // the client's, of a stream
  std::int64_t sent = 0;
  for (const std::size_t size : {500'000U, 600'000U, 3'000'000U, 10U}) {
    CAPTURE(size);
    const auto message = framed(std::string(size, 'x'));
    for (std::size_t at = 0; at < message.size();) {
      const auto part = message.substr(at, 16'000);
      REQUIRE(s.until([&] { return s.server.room_of(1, window) - sent >= static_cast<std::int64_t>(part.size()); }));
      s.server.send_data(1, part);
      s.until([&] { return s.reactor.poll() == 0; });  // the client takes it
      sent += static_cast<std::int64_t>(part.size());
      at += part.size();
    }
    const auto got = test::run(s.reactor, next_message(s.connection, stream));
    REQUIRE(got);
    CHECK(got->size() == size);
  }
}

TEST_CASE("a stream that nobody holds any more may end in any way") {
  Scene s;
  static_cast<void>(open_stream(*s.connection, "/a.Service/Method", "?", 10));
  s.server.send_headers(1, {{":status", "200"}});
  s.server.send_data(1, framed("a message that is too large"));
  CHECK(s.until([&] { return s.server.count(frame_type::rst_stream) == 1; }));
  CHECK(s.connection->is_open());
}

TEST_CASE("a stream is ended by us at any time") {
  Scene s;
  const auto stream = open_stream(*s.connection, "/a.Service/Method", "?", 100);
  std::optional<std::optional<std::string>> message;
  asio::cancellation_signal cancel;
  asio::co_spawn(
      s.reactor, next_message(s.connection, stream),
      asio::bind_cancellation_slot(cancel.slot(), [&](const std::exception_ptr&, auto next) { message = next; }));
  // The call was sent before the coroutine has begun, and Asio throws out of the reactor for one cancelled before that.
  REQUIRE(s.until([&] { return s.reactor.poll() == 0; }));
  REQUIRE(s.until([&] { return s.server.count(frame_type::headers) == 1; }));
  CHECK_FALSE(message.has_value());
  SUBCASE("by cancelling it") { s.connection->cancel(stream); }
  SUBCASE("by cancelling whoever waits for it") { cancel.emit(asio::cancellation_type::terminal); }
  SUBCASE("by closing the connection") { s.connection->close(); }
  REQUIRE(s.until([&] { return message.has_value(); }));
  CHECK(*message == std::nullopt);
  CHECK(stream->ended->error_code() == grpc::StatusCode::CANCELLED);
}

TEST_CASE("a connection that is closed leaves the reactor nothing to do") {
  Scene s;
  const auto answer = s.ask();
  s.connection->close();
  s.reactor.restart();
  s.reactor.run();  // returns
  REQUIRE(answer->has_value());
  CHECK((*answer)->status.error_code() == grpc::StatusCode::CANCELLED);
  s.connection->close();
}

TEST_CASE("where nobody listens there is no connection, and the reason is said") {
  const test::TemporaryDirectory directory;
  asio::io_context reactor{1};
  const auto made = Connection::to(reactor.get_executor(), directory / "nobody");
  REQUIRE_FALSE(made);
  CHECK(made.error().message == "No such file or directory");
}

}  // namespace evictd::rpc::connection_test
