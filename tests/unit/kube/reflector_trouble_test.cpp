#include <doctest/doctest.h>

#include <chrono>

#include "kube/reflected.hpp"

namespace evictd::kube::reflector_trouble_test {

namespace kube = evictd::kube;
using namespace evictd::test;
using Lines = std::vector<std::string>;

TEST_CASE("a server that ends every watch at once is not asked at full speed") {
  Reflected f;
  f.begin();
  const auto next = f.expect_watch();
  f.feed->end();
  REQUIRE(f.wait_for_watches(2));
  CHECK(f.last_error() == f.line("the server ended the watch at once"));
  CHECK(f.server.lines().back() == watch_line(1));
}

TEST_CASE("a watch that breaks or falls silent goes on from the last version") {
  auto options = quick();
  options.longest_silence = 2s;
  Reflected f{options};
  f.begin();
  const auto next = f.expect_watch();
  f.feed->line(event("ADDED", "b", 2));
  REQUIRE(f.wait_for_told(2));
  std::string what;
  SUBCASE("broken") {
    f.feed->cut();
    what = "the server broke the connection";
  }
  SUBCASE("silent") { what = "no answer in time"; }
  REQUIRE(f.reactor.run_until([&] { return f.states.size() >= 3; }));
  CHECK(f.last_error() == f.server.url() + ": " + what);
  if (what == "no answer in time") CHECK(f.states[2].stale_since == f.states[2].last_contact);
  next->line(event("DELETED", "b", 3));
  REQUIRE(f.wait_for_told(3));
  CHECK(f.told.back() == "- " + object("b", 3));
  CHECK(f.reflector->state().lists == 1);
  CHECK(f.server.lines()[2] == watch_line(2));
}

TEST_CASE("a version that is gone means a new list, in either form") {
  Reflected f;
  f.begin();
  std::string what;
  SUBCASE("as an event") {
    f.feed->line(R"({"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old resource version"}})");
    what = "the watch ended: 410 too old resource version";
  }
  SUBCASE("as an answer") {
    f.feed->line(event("BOOKMARK", "", 2));
    f.feed->end();
    f.server.then(refuses(410, "Gone", "too old resource version"));
    what = "410 Gone: too old resource version";
  }
  SUBCASE("and so does any other error event") {
    f.feed->line(R"({"type":"ERROR","object":{"kind":"Status","code":500,"message":"etcd is gone"}})");
    what = "the watch ended: 500 etcd is gone";
  }
  SUBCASE("an event that is none") {
    f.feed->line("<html>");
    what = "a watch event: is no JSON: syntax error";
  }
  f.server.then(lists(20, {object("c", 20)}));
  const auto next = f.expect_watch();
  REQUIRE(f.wait_for_watches(f.server.asked().size() > 3 ? 3 : 2));
  REQUIRE(f.wait_for_told(2));
  CHECK(f.told.back() == "= " + object("c", 20));
  CHECK(contains(f.last_error(), f.line(what)));
  CHECK(f.reflector->state().lists == 2);
}

TEST_CASE("a refusal is tried again, and its words are kept") {
  Reflected f;
  f.server.then(refuses(403, "Forbidden", "pods is forbidden: User \"x\" cannot list resource \"pods\""));
  f.server.then(answers(500, "oops"));
  f.server.then(refuses(401, "Unauthorized", "Unauthorized"));
  f.server.then([](Exchange& exchange) { exchange.cut(); });  // the kept connection: it is asked again at once
  f.server.then([](Exchange& exchange) { exchange.cut(); });
  f.server.then(answers(200, "no list"));
  f.start();
  const auto wait_for = [&](const std::string& what) {
    CHECK(f.reactor.run_until([&] { return f.last_error() == what; }));
  };
  wait_for(f.line("403 Forbidden: pods is forbidden: User \"x\" cannot list resource \"pods\""));
  wait_for(f.line("500 Internal Server Error"));
  wait_for(f.line("401 Unauthorized: Unauthorized"));
  wait_for(f.server.url() + ": the server broke the connection");
  wait_for(f.line("the list: is no JSON: syntax error"));
  f.server.then(lists(1));
  f.server.otherwise(streams(f.feed));
  CHECK(f.wait_for_watches(1));
  CHECK_FALSE(f.reflector->state().stale_since.has_value());
}

TEST_CASE("a server that is busy is asked again when it said, not before") {
  Reflected f;
  f.server.then(refuses(429, "TooManyRequests", "later", {{"Retry-After", "1"}}));
  f.server.then(lists(1));
  f.server.then(refuses(503, "ServiceUnavailable", "later", {{"Retry-After", "1"}}));
  f.server.then(streams(f.feed));
  const auto begin = std::chrono::steady_clock::now();
  f.start();
  REQUIRE(f.wait_for_watches(1));
  CHECK(std::chrono::steady_clock::now() - begin >= 2s);
  CHECK(f.server.lines() == Lines{list_line, list_line, watch_line(1), watch_line(1)});
}

TEST_CASE("a server that goes away and comes back is found again") {
  Reflected f;
  f.begin();
  f.server.stop_listening();
  REQUIRE(f.reactor.run_until([&] { return contains(f.last_error(), "cannot connect: Connection refused"); }));
  CHECK(f.reflector->state().stale_since.has_value());
  const auto next = f.expect_watch();
  f.server.listen_again();
  REQUIRE(f.wait_for_watches(2));
  CHECK(f.server.lines().back() == watch_line(1));
  CHECK(f.reflector->state().lists == 1);
}

}  // namespace evictd::kube::reflector_trouble_test
