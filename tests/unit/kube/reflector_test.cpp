#include "kube/reflector.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <optional>

#include "kube/reflected.hpp"

namespace evictd::kube::reflector_test {

namespace kube = evictd::kube;
using namespace evictd::test;
using Lines = std::vector<std::string>;

TEST_CASE("a list, then what the watch tells from its version on, in order") {
  Reflected f;
  f.begin();
  f.feed->line(event("ADDED", "b", 2));
  f.feed->line(event("MODIFIED", "a", 3));
  f.feed->line(event("BOOKMARK", "", 9));
  f.feed->line(event("DELETED", "b", 10));
  REQUIRE(f.wait_for_told(4));
  CHECK(f.told == Lines{"= " + object("a", 1), "+ " + object("b", 2), "+ " + object("a", 3), "- " + object("b", 10)});
  CHECK(f.server.lines() == Lines{list_line, watch_line(1)});

  const auto& state = f.reflector->state();
  CHECK(state.synced_since.has_value());
  CHECK(state.last_contact >= state.synced_since);
  CHECK_FALSE(state.stale_since.has_value());
  CHECK_FALSE(state.last_error.has_value());
  CHECK(state.lists == 1);
  CHECK(state.watches == 1);
  CHECK(state.events == 4);
}

TEST_CASE("before the first list it is neither synced nor fresh, and each change of that is told once") {
  Reflected f;
  CHECK_FALSE(f.reflector->state().synced_since.has_value());
  CHECK(f.reflector->state().stale_since.has_value());
  f.begin();
  REQUIRE(f.states.size() == 2);
  CHECK(f.states[0].synced_since.has_value());
  CHECK(f.states[0].stale_since.has_value());
  CHECK_FALSE(f.states[1].stale_since.has_value());

  const auto next = f.expect_watch();
  f.feed->cut();
  REQUIRE(f.wait_for_watches(2));
  REQUIRE(f.states.size() == 4);
  CHECK(f.states[2].stale_since.has_value());
  CHECK(f.states[2].last_error.has_value());
  CHECK_FALSE(f.states[3].stale_since.has_value());
}

TEST_CASE("that the first list fails is told, once for each reason") {
  Reflected f;
  f.server.then(refuses(403, "Forbidden", "no"));
  f.server.then(refuses(403, "Forbidden", "no"));
  f.server.then(refuses(500, "InternalError", "later"));
  f.begin();
  REQUIRE(f.states.size() == 4);
  CHECK(f.states[0].last_error == evictd::Error{f.line("403 Forbidden: no")});
  CHECK(f.states[1].last_error->message.find("500") != std::string::npos);
  CHECK_FALSE(f.states[1].synced_since.has_value());
  CHECK(f.states[2].synced_since.has_value());
  CHECK_FALSE(f.states[3].stale_since.has_value());
}

TEST_CASE("a list in pages is handed out as one") {
  Reflected f;
  f.server.then(lists(5, {object("a", 1), object("b", 2)}, "to/ken=="));
  f.server.then(lists(5, {object("c", 3)}));
  f.server.then(streams(f.feed));
  f.start();
  REQUIRE(f.wait_for_watches(1));
  CHECK(f.told == Lines{"= " + object("a", 1) + " " + object("b", 2) + " " + object("c", 3)});
  CHECK(f.server.lines() == Lines{list_line,
                                  "GET /api/v1/pods?fieldSelector=spec.nodeName%3Dn&limit=500&continue=to%2Fken%3D%3D",
                                  watch_line(5)});
}

TEST_CASE("pages whose token has expired begin anew") {
  Reflected f;
  f.server.then(lists(5, {object("a", 1)}, "token"));
  f.server.then(refuses(410, "Expired", "The provided continue parameter is too old"));
  f.server.then(lists(6, {object("b", 6)}));
  f.server.then(streams(f.feed));
  f.start();
  REQUIRE(f.wait_for_watches(1));
  CHECK(f.told == Lines{"= " + object("b", 6)});
  CHECK(f.last_error() == f.line("410 Gone: The provided continue parameter is too old"));
}

TEST_CASE("a list that would fill the memory is an error") {
  auto options = quick();
  options.most_objects = 2;
  Reflected f{options};
  f.server.then(lists(5, {object("a", 1), object("b", 2)}, "token"));
  f.server.then(lists(5, {object("c", 3)}));
  f.server.then(lists(6, {object("a", 1)}));
  f.server.then(streams(f.feed));
  f.start();
  REQUIRE(f.wait_for_watches(1));
  CHECK(f.told == Lines{"= " + object("a", 1)});
  CHECK(f.last_error() == f.line("the list has more than 2 objects"));
}

TEST_CASE("a watch that the server ends goes on from the last version, and nothing is stale") {
  Reflected f;
  f.begin();
  const auto next = f.expect_watch();
  f.feed->line(event("BOOKMARK", "", 17));
  f.feed->end();
  next->line(event("ADDED", "b", 18));
  REQUIRE(f.wait_for_told(2));
  CHECK(f.server.lines() == Lines{list_line, watch_line(1), watch_line(17)});
  CHECK(f.states.size() == 2);
  CHECK(f.last_error() == "none");
}

TEST_CASE("a watch that the server ends before its time goes on at a random moment: other nodes' ended as well") {
  auto options = quick();
  options.retry.first = 400ms;
  Reflected f{options, 0.5};
  f.begin();
  const auto next = f.expect_watch();
  f.feed->line(event("BOOKMARK", "", 17));
  REQUIRE(f.reactor.run_until([&] { return f.reflector->state().events == 1; }));
  const auto ended = std::chrono::steady_clock::now();
  f.feed->end();
  next->line(event("ADDED", "b", 18));
  REQUIRE(f.wait_for_told(2));
  CHECK(std::chrono::steady_clock::now() - ended >= 200ms);
  CHECK(f.last_error() == "none");
}

TEST_CASE("a watch that ends in its time goes on at once") {
  auto options = quick();
  options.shortest_watch = options.longest_watch = 0s;
  options.retry.first = 1h;
  Reflected f{options, 0.5};
  f.begin();
  const auto next = f.expect_watch();
  f.feed->line(event("BOOKMARK", "", 17));
  f.feed->end();
  next->line(event("ADDED", "b", 18));
  CHECK(f.wait_for_told(2));
}

TEST_CASE("a large event is parsed beside the reactor, and the order stays") {
  Reflected f;
  f.begin();
  const std::string large(300'000, 'x');
  for (int i = 0; i < 10; ++i) {
    f.feed->line(event("MODIFIED", large, 2 * i + 2));
    f.feed->line(event("MODIFIED", "small", 2 * i + 3));
  }
  REQUIRE(f.wait_for_told(21));
  for (int i = 0; i < 10; ++i) {
    CHECK(f.told[static_cast<std::size_t>(2 * i + 1)] == "+ " + object(large, 2 * i + 2));
    CHECK(f.told[static_cast<std::size_t>(2 * i + 2)] == "+ " + object("small", 2 * i + 3));
  }
}

TEST_CASE("the start and the watches' lengths are spread") {
  auto options = quick();
  options.longest_start_delay = 200ms;
  Reflected f{options, 0.5};
  const auto begin = std::chrono::steady_clock::now();
  f.server.then(lists(1));
  f.server.then(streams(f.feed));
  f.start();
  REQUIRE(f.wait_for_watches(1));
  CHECK(std::chrono::steady_clock::now() - begin >= 100ms);
  CHECK(f.server.lines().back().ends_with("&timeoutSeconds=450"));
}

TEST_CASE("once stopped it hands out nothing, and lets the server go") {
  Reflected f;
  std::atomic<bool> server_is_free = false;
  f.server.then(lists(1, {object("a", 1)}));
  f.server.then([&](Exchange& exchange) {
    exchange.stream(*f.feed);
    server_is_free = true;
  });
  f.start();
  REQUIRE(f.wait_for_watches(1));
  SUBCASE("by stop()") { f.reflector->stop(); }
  SUBCASE("by its end") { f.reflector.reset(); }
  CHECK(f.reactor.run_until([&] { return server_is_free.load(); }));
  CHECK(f.told.size() == 1);
}

TEST_CASE("a handler may end the reflector") {
  Reflected f;
  struct Ending final : kube::ReflectorListener {
    std::optional<kube::Reflector> reflector;
    bool at_list = false;
    bool at_change = false;
    int told = 0;

    void end_it() {
      ++told;
      reflector.reset();
    }
    void replaced(std::vector<std::string> /*objects*/) override {
      if (at_list) end_it();
    }
    void upserted(std::string /*object*/) override { end_it(); }
    void deleted(std::string /*object*/) override { end_it(); }
    void state_changed(const kube::ReflectorState& /*state*/) override {
      if (at_change) end_it();
    }
  };
  Ending ending;
  auto& other = ending.reflector;
  SUBCASE("at the list") { ending.at_list = true; }
  SUBCASE("at a change of state") { ending.at_change = true; }
  SUBCASE("at an event") {}
  other.emplace(f.reactor.context.get_executor(), f.reactor.workers.get_executor(), f.client,
                kube::Collection{.path = "/x", .query = {}}, ending, quick());
  f.server.then(lists(1));
  f.server.then(streams(f.feed));
  f.feed->line(event("ADDED", "a", 2));
  f.feed->line(event("ADDED", "b", 3));
  other->start();
  REQUIRE(f.reactor.run_until([&] { return !other; }));
  while (f.reactor.context.poll() > 0) {
  }
  CHECK(ending.told == 1);
}

}  // namespace evictd::kube::reflector_test
