#include "kube/client.hpp"

#include <doctest/doctest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <optional>
#include <thread>

#include "kube/api_server.hpp"
#include "kube/reactor.hpp"

namespace evictd::kube::client_test {

namespace asio = boost::asio;
namespace kube = evictd::kube;
using namespace evictd::test;
using evictd::fixture::error_of;
using evictd::fixture::value_of;
using namespace std::chrono_literals;

namespace {

/// A plain http server and its client.
struct Fixture {
  ApiServer server;
  KubeReactor reactor;
  kube::Client client;

  explicit Fixture(kube::ClientOptions options = {})
      : client{reactor.context.get_executor(), reactor.workers.get_executor(), credentials_for(server.url()), options} {
  }

  evictd::Result<kube::Response> send(kube::Request request, evictd::core::Duration deadline = patience) {
    return reactor.run(client.send(std::move(request), deadline));
  }
  std::string error(kube::Request request, evictd::core::Duration deadline = patience) {
    return error_of(send(std::move(request), deadline));
  }
  /// "http://127.0.0.1:PORT: what"
  std::string line(std::string_view what) const { return server.url() + ": " + std::string(what); }
};

Handler raw_then_hold(std::string bytes) {
  return [=](Exchange& exchange) {
    exchange.raw(bytes);
    exchange.hold();
  };
}

Handler raw_then_cut(std::string bytes) {
  return [=](Exchange& exchange) {
    exchange.raw(bytes);
    exchange.cut();
  };
}

}  // namespace

TEST_CASE("a request arrives as it was meant, and the answer comes back whole") {
  Fixture f;
  f.server.then(answers(201, R"({"kind":"Event"})"));
  const auto response = value_of(f.send({.method = "PATCH",
                                         .target = "/api/v1/namespaces/a/pods/b/status?fieldManager=evictd",
                                         .content_type = "application/strategic-merge-patch+json",
                                         .body = R"({"status":{}})"}));
  CHECK(response.status == 201);
  CHECK(response.is_success());
  CHECK(response.body == R"({"kind":"Event"})");
  CHECK_FALSE(response.retry_after.has_value());

  const auto asked = f.server.asked().at(0);
  CHECK(asked.line() == "PATCH /api/v1/namespaces/a/pods/b/status?fieldManager=evictd");
  CHECK(asked.body == R"({"status":{}})");
  CHECK(asked.header("content-type") == "application/strategic-merge-patch+json");
  CHECK(asked.header("content-length") == "13");
  CHECK(asked.header("accept") == "application/json");
  CHECK(asked.header("user-agent") == "evictd/" EVICTD_VERSION);
  CHECK(asked.header("host") == f.server.url().substr(7));
  CHECK_FALSE(asked.headers.contains("authorization"));
}

TEST_CASE("a refusal is an answer, with the server's own words for an error line") {
  Fixture f;
  f.server.then(refuses(409, "Conflict", "the object has been modified\nmeanwhile"));
  const auto conflict = value_of(f.send({.method = "PATCH", .target = "/x", .body = "{}"}));
  CHECK(conflict.status == 409);
  CHECK(kube::describe(conflict) == R"(409 Conflict: the object has been modified\nmeanwhile)");

  f.server.then(answers(500, "<html>"));
  CHECK(kube::describe(value_of(f.send(get("/x")))) == "500 Internal Server Error");

  std::string umlauts;
  for (int i = 0; i < 300; ++i) umlauts += "x\xc3\xa4";
  f.server.then(refuses(403, "Forbidden", umlauts));
  CHECK(kube::describe(value_of(f.send(get("/x")))).ends_with("\xc3\xa4x…"));

  f.server.then(answers(302, "", {{"Location", "/elsewhere"}}));
  CHECK(value_of(f.send(get("/x"))).status == 302);
  CHECK(f.server.asked().size() == 4);
}

TEST_CASE("Retry-After is told where it is given in seconds") {
  Fixture f;
  const auto retry_after = [&](const char* text) {
    f.server.then(refuses(429, "TooManyRequests", "later", {{"Retry-After", text}}));
    return value_of(f.send(get("/x"))).retry_after;
  };
  CHECK(retry_after("7") == 7s);
  CHECK(retry_after("0") == 0s);
  CHECK(retry_after("Wed, 21 Oct 2026 07:28:00 GMT") == std::nullopt);
  CHECK(retry_after("-1") == std::nullopt);
  CHECK(retry_after("99999999999999999999") == std::nullopt);
}

TEST_CASE("one connection serves request after request, and is kept only if the server keeps it") {
  Fixture f;
  f.server.otherwise(answers(200, "{}"));
  for (int i = 0; i < 3; ++i) CHECK(f.send(get("/x")).has_value());
  CHECK(f.server.connections() == 1);

  f.server.then(answers(200, "{}", {{"Connection", "close"}}));
  CHECK(f.send(get("/x")).has_value());
  CHECK(f.send(get("/x")).has_value());
  CHECK(f.server.connections() == 2);
}

TEST_CASE("an unused connection is not kept for ever") {
  Fixture f{{.keep_idle = 1ms}};
  f.server.otherwise(answers(200, "{}"));
  CHECK(f.send(get("/x")).has_value());
  asio::steady_timer later{f.reactor.context, 20ms};
  bool is_later = false;
  later.async_wait([&](auto) { is_later = true; });
  REQUIRE(f.reactor.run_until([&] { return is_later; }));
  CHECK(f.send(get("/x")).has_value());
  CHECK(f.server.connections() == 2);
}

TEST_CASE("requests run side by side, each on its own connection") {
  Fixture f;
  auto feed = std::make_shared<Feed>();
  f.server.then(streams(feed));
  f.server.then(answers(200, "second"));
  std::optional<std::string> first;
  asio::co_spawn(f.reactor.context, f.client.send(get("/first"), patience),
                 [&](std::exception_ptr, auto response) { first = value_of(std::move(response)).body; });
  REQUIRE(f.reactor.run_until([&] { return f.server.asked().size() == 1; }));
  CHECK(value_of(f.send(get("/second"))).body == "second");
  CHECK_FALSE(first.has_value());
  feed->line("first");
  feed->end();
  REQUIRE(f.reactor.run_until([&] { return first.has_value(); }));
  CHECK(*first == "first\n");
  CHECK(f.server.connections() == 2);
}

TEST_CASE("a kept connection that has died is replaced, unless that could do something twice") {
  Fixture f;
  f.server.otherwise(answers(200, "{}"));
  CHECK(f.send(get("/x")).has_value());

  SUBCASE("seen before the request") {
    f.server.stop_listening();
    f.server.listen_again();
    CHECK(f.send({.method = "POST", .target = "/x"}).has_value());
    CHECK(f.server.lines() == std::vector<std::string>{"GET /x", "POST /x"});
  }
  SUBCASE("seen by the answer that does not come") {
    f.server.then([](Exchange& exchange) { exchange.cut(); });
    CHECK(f.send({.method = "DELETE", .target = "/x"}).has_value());
    CHECK(f.server.lines() == std::vector<std::string>{"GET /x", "DELETE /x", "DELETE /x"});
  }
  SUBCASE("a POST may have been done") {
    f.server.then([](Exchange& exchange) { exchange.cut(); });
    CHECK(f.error({.method = "POST", .target = "/x"}) == f.line("the server broke the connection"));
    CHECK(f.server.lines() == std::vector<std::string>{"GET /x", "POST /x"});
  }
  SUBCASE("so may a request whose answer had begun") {
    f.server.then(raw_then_cut("HTTP/1.1 200"));
    CHECK(f.error(get("/x")) == f.line("the server broke the connection"));
    CHECK(f.server.asked().size() == 2);
  }
  SUBCASE("and a new connection that breaks is not tried a third time") {
    f.server.then([](Exchange& exchange) { exchange.cut(); });
    f.server.then([](Exchange& exchange) { exchange.cut(); });
    CHECK(f.error(get("/x")) == f.line("the server broke the connection"));
    CHECK(f.server.asked().size() == 3);
  }
}

TEST_CASE("nobody listens: the line says where") {
  Fixture f;
  f.server.stop_listening();
  CHECK(f.error(get("/x")) == f.line("cannot connect: Connection refused"));
}

TEST_CASE("a name without an address says so") {  // no DNS server is asked for this one
  KubeReactor reactor;
  kube::Client client{reactor.context.get_executor(), reactor.workers.get_executor(), credentials_for("http://a..b")};
  const auto error = error_of(reactor.run(client.send(get("/x"), patience)));
  CHECK(contains(error, "http://a..b:80: cannot be resolved: "));
}

TEST_CASE("a server that is too slow costs the deadline and no more") {
  Fixture f;
  f.server.then(answers(200, "{}"));
  CHECK(f.send(get("/x")).has_value());  // the credentials are read, the connection is there
  SUBCASE("it says nothing") { f.server.then(raw_then_hold("")); }
  SUBCASE("it stops in the header") { f.server.then(raw_then_hold("HTTP/1.1 200 OK\r\nContent-")); }
  SUBCASE("it stops in the body") { f.server.then(raw_then_hold("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{")); }
  CHECK(f.error(get("/x"), 300ms) == f.line("no answer in time"));
  REQUIRE(f.reactor.run_until([&] { return f.server.asked().size() == 2; }));
  f.server.then(answers(200, "{}"));
  CHECK(value_of(f.send(get("/x"))).status == 200);
}

TEST_CASE("a slow header is waited for within the deadline") {
  Fixture f;
  f.server.then([](Exchange& exchange) {
    for (const char c : std::string_view("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")) {
      exchange.raw({&c, 1});
      std::this_thread::sleep_for(1ms);
    }
  });
  CHECK(value_of(f.send(get("/x"))).body == "{}");
}

TEST_CASE("half an answer is none") {
  Fixture f;
  SUBCASE("in the body") { f.server.then(raw_then_cut("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{")); }
  SUBCASE("in a chunk") {
    f.server.then(raw_then_cut("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{\"kind\""));
  }
  SUBCASE("between chunks") {
    f.server.then(raw_then_cut("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"));
  }
  SUBCASE("nothing at all") {
    f.server.then([](Exchange& exchange) { exchange.cut(); });
  }
  CHECK(f.error(get("/x")) == f.line("the server broke the connection"));
}

TEST_CASE("an answer that is too large, or none, ends the connection") {
  Fixture f{{.largest_body = 1000}};
  f.server.then(answers(200, std::string(1000, 'x')));
  CHECK(value_of(f.send(get("/x"))).body.size() == 1000);

  f.server.then(answers(200, std::string(2048, 'x')));
  CHECK(contains(f.error(get("/x")), f.line("the answer is larger than ")));
  f.server.then([](Exchange& exchange) {
    exchange.raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 4; ++i) exchange.raw("200\r\n" + std::string(512, 'x') + "\r\n");
    exchange.hold();
  });
  CHECK(contains(f.error(get("/x")), f.line("the answer is larger than ")));
  f.server.then(raw_then_hold("HTTP/1.1 200 OK\r\nX: " + std::string(100'000, 'x')));
  CHECK(f.error(get("/x")) == f.line("the answer's header is larger than 64 KiB"));
  f.server.then(raw_then_hold("SSH-2.0-OpenSSH_9.2\r\n"));
  CHECK(contains(f.error(get("/x")), f.line("the answer is no HTTP: ")));
  f.server.then(answers(200, "x", {{"Content-Encoding", "gzip"}}));
  CHECK(f.error(get("/x")) == f.line("the answer is compressed, which was not asked for"));
  CHECK(f.server.connections() == 5);
}

TEST_CASE("what would break out of the request is not sent") {
  Fixture f;
  for (const auto* target : {"/a b", "/a\r\nHost: x", "", "a", "/\xc3\xa4"})
    CHECK(contains(f.error(get(target)), "is no request"));
  CHECK(contains(f.error({.method = "GET /x HTTP/1.1\r\nX:", .target = "/"}), "is no request"));
  CHECK(contains(f.error({.target = "/", .content_type = "a\nb"}), "is no request"));
  CHECK(f.server.asked().empty());
}

TEST_CASE("stopping ends what is under way and refuses what comes later") {
  Fixture f;
  f.server.then(raw_then_hold(""));
  std::optional<std::string> error;
  asio::co_spawn(f.reactor.context, f.client.send(get("/x"), 1h),
                 [&](std::exception_ptr, auto response) { error = error_of(response); });
  REQUIRE(f.reactor.run_until([&] { return f.server.asked().size() == 1; }));
  f.client.stop();
  REQUIRE(f.reactor.run_until([&] { return error.has_value(); }));
  CHECK(*error == f.line("stopped"));
  CHECK(f.error(get("/x")) == f.line("stopped"));
  CHECK(f.server.asked().size() == 1);
}

TEST_CASE("a client may go while a request is under way") {
  ApiServer server;
  server.then(raw_then_hold(""));
  KubeReactor reactor;
  std::optional<kube::Client> client{std::in_place, reactor.context.get_executor(), reactor.workers.get_executor(),
                                     credentials_for(server.url())};
  bool is_done = false;
  asio::co_spawn(reactor.context, client->send(get("/x"), 1h),
                 [&](std::exception_ptr, const auto&) { is_done = true; });
  REQUIRE(reactor.run_until([&] { return server.asked().size() == 1; }));
  client.reset();
  CHECK(reactor.run_until([&] { return is_done; }));
}

}  // namespace evictd::kube::client_test
