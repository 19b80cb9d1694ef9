#include "kube/http_hook.hpp"

#include <doctest/doctest.h>

#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <string>
#include <vector>

#include "async/run_until_either.hpp"
#include "kube/api_server.hpp"
#include "kube/reactor.hpp"
#include "os/now.hpp"

namespace evictd::kube::http_hook_test {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using namespace evictd::test;
using core::HttpGetHook;
using fixture::error_of;
using fixture::value_of;

std::string request(const HttpGetHook& hook, const std::string& host = "10.0.0.7") {
  return value_of(http_hook_request(hook, host));
}

/// What comes of the hook, sent to a server of the test.
struct Fixture {
  KubeReactor reactor;

  Result<int> run(HttpGetHook hook, const ApiServer& server, std::chrono::seconds time = patience) {
    hook.port = std::to_string(server.port());
    return reactor.run(run_http_hook(reactor.context.get_executor(), hook, "127.0.0.1", os::now() + time));
  }
};

}  // namespace

TEST_CASE("a hook's request is the kubelet's: path, host with its port, and its own headers") {
  CHECK(request({.port = "80"}) ==
        "GET / HTTP/1.1\r\nHost: 10.0.0.7:80\r\nUser-Agent: kube-lifecycle/1.36 (evictd)\r\nAccept: */*\r\n"
        "Connection: close\r\n\r\n");
  CHECK(request({.port = "8080", .path = "bye?now=1#part"}, "fd00::7")
            .starts_with("GET /bye?now=1 HTTP/1.1\r\nHost: [fd00::7]:8080\r\n"));
  const auto own = request({.port = "80",
                            .path = "/a b",
                            .headers = {{"HOST", "web.example"}, {"User-Agent", "me"}, {"Accept", ""}, {"X-A", "1"}}});
  CHECK(own == "GET /a%20b HTTP/1.1\r\nHost: web.example\r\nUser-Agent: me\r\nX-A: 1\r\nConnection: close\r\n\r\n");
}

TEST_CASE("a hook cannot write more than one request") {
  const std::string escaping = "x\r\nX-Injected: 1";
  CHECK_FALSE(http_hook_request({.port = "80", .path = "/" + escaping}, "a"));
  CHECK_FALSE(http_hook_request({.port = "80", .headers = {{"A", escaping}}}, "a"));
  CHECK_FALSE(http_hook_request({.port = "80", .headers = {{escaping, "1"}}}, "a"));
  CHECK_FALSE(http_hook_request({.port = "80", .headers = {{"Host", escaping}}}, "a"));
  CHECK_FALSE(http_hook_request({.port = "80"}, escaping));
  CHECK_FALSE(http_hook_request({.port = "80"}, ""));
  CHECK_FALSE(http_hook_request({.port = "80", .headers = {{"", "1"}}}, "a"));
  CHECK_FALSE(http_hook_request({.port = "80", .path = std::string("/\0", 2)}, "a"));
  const auto framed = request({.port = "80", .headers = {{"Content-Length", "5"}, {"transfer-encoding", "chunked"}}});
  CHECK(framed.find("ength") == std::string::npos);
  CHECK(framed.find("hunked") == std::string::npos);
  for (const auto* port : {"", "web", "0", "65536", "80 ", "-1"}) {
    CAPTURE(port);
    CHECK(error_of(http_hook_request({.port = port}, "a")).starts_with("its port \""));
  }
}

TEST_CASE("any answer will do, and a redirect is one") {
  Fixture f;
  ApiServer server;
  server.then(answers(200, "bye"));
  server.then(answers(500, "no"));
  server.then(answers(302, "", {{"Location", "/elsewhere"}}));
  server.then(answers(200, std::string(1 << 20, 'x')));
  server.then([](Exchange& exchange) { exchange.raw("HTTP/1.1 204 No Content\r\n\r\n"); });
  for (const int status : {200, 500, 302, 200, 204}) CHECK(value_of(f.run({.path = "/bye"}, server)) == status);
  CHECK(server.lines() == std::vector<std::string>(5, "GET /bye"));
}

TEST_CASE("a server is spoken to by TLS whoever signed its certificate") {
  Fixture f;
  const Authority unknown;
  ApiServer server{ServerTls{.identity = unknown.issue({.names = "DNS:another", .valid_until = -60s})}};
  server.otherwise(answers(200, ""));
  CHECK(value_of(f.run({.https = true}, server)) == 200);
}

TEST_CASE("a server that does not answer costs the time and no more, and one that is not there none") {
  Fixture f;
  int port = 0;
  {
    ApiServer server;
    port = server.port();
    server.otherwise([](Exchange& exchange) { exchange.hold(); });
    CHECK(error_of(f.run({}, server, 1s)) == "no answer in time");
  }
  const HttpGetHook hook{.port = std::to_string(port)};
  const auto refused =
      f.reactor.run(run_http_hook(f.reactor.context.get_executor(), hook, "127.0.0.1", os::now() + patience));
  CHECK(error_of(refused).starts_with("cannot connect: "));
}

TEST_CASE("a hook that is cancelled breaks its connection") {
  Fixture f;
  ApiServer server;
  server.otherwise([](Exchange& exchange) { exchange.hold(); });
  const HttpGetHook hook{.port = std::to_string(server.port())};
  const auto get = [&]() -> asio::awaitable<void> {
    static_cast<void>(co_await run_http_hook(f.reactor.context.get_executor(), hook, "127.0.0.1", os::now() + 1h));
  };
  const auto asked = [&]() -> asio::awaitable<void> {
    asio::steady_timer timer{f.reactor.context};
    while (server.lines().empty()) {
      timer.expires_after(5ms);
      co_await timer.async_wait(asio::use_awaitable);
    }
  };
  auto work = get();
  auto limit = asked();
  CHECK_FALSE(f.reactor.run(async::run_until_either(std::move(work), std::move(limit))));
}

}  // namespace evictd::kube::http_hook_test
