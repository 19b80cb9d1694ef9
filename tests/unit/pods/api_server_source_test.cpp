#include "pods/api_server_source.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <latch>

#include "cri/run.hpp"
#include "fixture/result.hpp"
#include "kube/api_server.hpp"
#include "kube/client.hpp"
#include "pods/combine.hpp"
#include "pods/fake_source.hpp"

namespace evictd::pods::api_server_source_test {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using State = SpecSourceStatus::State;

std::string object(const std::string& name, int priority, int version, const std::string& metadata = {}) {
  return fmt::format(
      R"({{"metadata": {{"name": "{0}", "namespace": "shop", "uid": "uid-{0}", "resourceVersion": "{2}"{3}}},)"
      R"("spec": {{"priority": {1}, "containers": [{{"name": "main"}}]}}}})",
      name, priority, version, metadata);
}

std::string list(int version, const std::string& items) {
  return fmt::format(
      R"({{"kind": "PodList", "apiVersion": "v1", "metadata": {{"resourceVersion": "{}"}}, "items": [{}]}})", version,
      items);
}

std::string event(const std::string& type, const std::string& object) {
  return fmt::format(R"({{"type": "{}", "object": {}}})", type, object);
}

bool is_list(const test::Asked& asked) { return asked.target.find("watch=") == std::string::npos; }

struct Mirrored : test::HeardSpecs {
  test::ApiServer server;
  asio::io_context reactor{1};
  asio::thread_pool pool{2};
  std::unique_ptr<kube::Client> client;
  std::unique_ptr<ApiServerSource> source;

  void start(core::Duration longest_parse = ApiServerSourceOptions{}.longest_parse) {
    client = std::make_unique<kube::Client>(reactor.get_executor(), pool.get_executor(),
                                            fixture::value_of(kube::url_credentials(server.url(), "", "")));
    ApiServerSourceOptions options{.node_name = "node/1", .longest_parse = longest_parse};
    options.reflector.retry = {.first = 1ms, .longest = 10ms};
    source = std::make_unique<ApiServerSource>(reactor.get_executor(), pool.get_executor(), *client, options);
    source->start(*this);
  }
  ~Mirrored() {
    source.reset();
    client.reset();
    pool.join();
  }

  bool until(const std::function<bool()>& done) { return test::run_until(reactor, done); }
  bool is(State state) {
    return until([&] { return source->status().state == state; });
  }
  std::optional<std::int32_t> priority_of(std::string_view name) const {
    for (const auto& pod : *source->pods())
      if (pod->name == name) return pod->priority;
    return std::nullopt;
  }
};

}  // namespace

TEST_CASE("this node's pods are listed and watched: what comes, changes and goes is known") {
  Mirrored mirrored;
  const auto feed = std::make_shared<test::Feed>();
  mirrored.server.then(test::answers(200, list(10, object("a", 1, 8) + "," + object("b", 2, 9))));
  mirrored.server.then(test::streams(feed));
  mirrored.start();
  CHECK(mirrored.source->status().state == State::Waiting);
  REQUIRE(mirrored.until([&] { return mirrored.source->pods()->size() == 2; }));
  CHECK(mirrored.is(State::Synced));
  CHECK(mirrored.server.lines().at(0).starts_with("GET /api/v1/pods?fieldSelector=spec.nodeName%3Dnode%2F1&"));

  feed->line(event("ADDED", object("c", 3, 11)));
  REQUIRE(mirrored.until([&] { return mirrored.priority_of("c") == 3; }));
  feed->line(event("MODIFIED", object("a", 5, 12)));
  REQUIRE(mirrored.until([&] { return mirrored.priority_of("a") == 5; }));
  feed->line(event("DELETED", object("b", 2, 13)));
  REQUIRE(mirrored.until([&] { return !mirrored.priority_of("b"); }));
  CHECK(mirrored.source->status().pods == 2);
  CHECK(mirrored.told.empty());

  const auto changes = mirrored.changes;
  feed->line(event("MODIFIED", object("a", 5, 14)));  // nothing that matters
  feed->line(event("ADDED", object("d", 4, 15)));
  REQUIRE(mirrored.until([&] { return mirrored.priority_of("d") == 4; }));
  CHECK(mirrored.changes == changes + 1);
}

TEST_CASE("changes keep their order, however fast they come") {
  Mirrored mirrored;
  const auto feed = std::make_shared<test::Feed>();
  mirrored.server.then(test::answers(200, list(1, "")));
  mirrored.server.then(test::streams(feed));
  mirrored.start();
  std::string burst;
  for (int i = 1; i <= 200; ++i) burst += event("MODIFIED", object("a", i, i + 1)) + "\n";
  burst += event("ADDED", object("last", 1, 300)) + "\n";
  feed->bytes(burst);
  REQUIRE(mirrored.until([&] { return mirrored.priority_of("last") == 1; }));
  CHECK(mirrored.priority_of("a") == 200);
}

TEST_CASE("after 410 Gone the new list replaces the old one") {
  Mirrored mirrored;
  const auto feed = std::make_shared<test::Feed>();
  const auto later = std::make_shared<test::Feed>();
  mirrored.server.then(test::answers(200, list(10, object("a", 1, 8) + "," + object("b", 2, 9))));
  mirrored.server.then(test::streams(feed));
  mirrored.server.then(test::answers(200, list(50, object("b", 3, 49))));
  mirrored.server.then(test::streams(later));
  mirrored.start();
  REQUIRE(mirrored.until([&] { return mirrored.source->pods()->size() == 2; }));
  feed->line(event("ERROR", R"({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})"));
  REQUIRE(mirrored.until([&] { return mirrored.source->pods()->size() == 1; }));
  CHECK(mirrored.priority_of("b") == 3);
  CHECK(mirrored.is(State::Synced));
}

TEST_CASE("without the API server the last list stays, stale, and it goes on when it is back") {
  Mirrored mirrored;
  const auto feed = std::make_shared<test::Feed>();
  mirrored.server.then(test::answers(200, list(10, object("a", 1, 8))));
  mirrored.server.then(test::streams(feed));
  mirrored.start();
  REQUIRE(mirrored.is(State::Synced));
  REQUIRE(mirrored.until([&] { return mirrored.source->pods()->size() == 1; }));
  // The list alone makes it synced; whoever asks next is to be told of what comes below.
  REQUIRE(mirrored.until([&] { return mirrored.server.asked().size() == 2; }));
  mirrored.server.stop_listening();
  REQUIRE(mirrored.is(State::Stale));
  CHECK(mirrored.source->status().stale_since.has_value());
  CHECK_FALSE(mirrored.source->status().error.empty());
  CHECK(mirrored.priority_of("a") == 1);
  CHECK_FALSE(mirrored.told.empty());

  mirrored.server.otherwise([](test::Exchange& exchange) {
    if (is_list(exchange.asked())) return exchange.answer(200, list(20, object("a", 2, 19)));
    test::Feed feed;
    feed.line(event("MODIFIED", object("a", 3, 21)));
    exchange.stream(feed);
  });
  mirrored.server.listen_again();
  REQUIRE(mirrored.is(State::Synced));
  CHECK(mirrored.until([&] { return mirrored.priority_of("a") == 3; }));
}

TEST_CASE("what the server sent and nobody gets to read makes the source stale until it is read") {
  Mirrored mirrored;
  const auto feed = std::make_shared<test::Feed>();
  mirrored.server.then(test::answers(200, list(10, object("a", 1, 8))));
  mirrored.server.then(test::streams(feed));
  mirrored.start(50ms);
  REQUIRE(mirrored.until([&] { return mirrored.source->pods()->size() == 1; }));
  REQUIRE(mirrored.until([&] { return mirrored.server.asked().size() == 2; }));
  REQUIRE(mirrored.is(State::Synced));
  const auto told = mirrored.told.size();
  std::latch hold{1};
  for (int i = 0; i < 2; ++i) asio::post(mirrored.pool, [&] { hold.wait(); });
  feed->line(event("MODIFIED", object("a", 5, 11)));
  CHECK(mirrored.is(State::Stale));
  CHECK(mirrored.source->status().error.contains("could not be read in time"));
  CHECK(mirrored.source->status().stale_since.has_value());
  CHECK(mirrored.told.size() == told + 1);
  CHECK(mirrored.priority_of("a") == 1);
  hold.count_down();
  REQUIRE(mirrored.until([&] { return mirrored.priority_of("a") == 5; }));
  CHECK(mirrored.is(State::Synced));
}

TEST_CASE("an API server that cannot be reached from the start makes the source stale, and says why") {
  Mirrored mirrored;
  mirrored.server.otherwise(test::refuses(403, "Forbidden", "pods is forbidden"));
  mirrored.start();
  REQUIRE(mirrored.is(State::Stale));
  CHECK(mirrored.source->status().error.find("403") != std::string::npos);
  CHECK(mirrored.source->pods()->empty());
  CHECK(mirrored.told.size() == 1);
}

TEST_CASE("a mirror pod is the spec of the static pod that CRI lists under the manifest's hash") {
  Mirrored mirrored;
  const auto feed = std::make_shared<test::Feed>();
  mirrored.server.then(test::answers(200, list(10, object("proxy-n1", 7, 9,
                                                          R"(, "annotations": {"kubernetes.io/config.source": "file",
      "kubernetes.io/config.hash": "h1", "kubernetes.io/config.mirror": "h1"})"))));
  mirrored.server.then(test::streams(feed));
  mirrored.start();
  REQUIRE(mirrored.until([&] { return mirrored.source->pods()->size() == 1; }));
  const core::Pod listed{.name_space = "shop", .name = "proxy-n1", .uid = "h1"};
  const SpecIndex index{{SpecOrigin::ApiServer, mirrored.source->pods()}, "n1"};
  const auto found = combine(std::make_shared<const core::Pod>(listed), std::span(&index, 1), TrustedNamespaces{{"*"}});
  CHECK(found->uid == "h1");
  CHECK(found->priority == 7);
  CHECK(core::is_critical(*found));
}

TEST_CASE("a pod that cannot be read is told, and the others are known") {
  Mirrored mirrored;
  const auto feed = std::make_shared<test::Feed>();
  mirrored.server.then(test::answers(
      200, list(10, R"({"metadata": {"name": "bad", "uid": "x", "resourceVersion": "7"}, "spec": {"containers": 7}},)" +
                        object("a", 1, 8))));
  mirrored.server.then(test::streams(feed));
  mirrored.start();
  REQUIRE(mirrored.until([&] { return mirrored.source->pods()->size() == 1; }));
  REQUIRE(mirrored.told.size() == 1);
  CHECK(mirrored.told[0].find("spec.containers") != std::string::npos);
}

TEST_CASE("a field that cannot be read costs itself and not the pod, and is told once, however often the pod changes") {
  Mirrored mirrored;
  const auto feed = std::make_shared<test::Feed>();
  const auto odd = [](const std::string& name, int priority, int version) {
    return object(name, priority, version, R"(, "labels": 7)");
  };
  mirrored.server.then(test::answers(200, list(10, odd("a", 7, 8))));
  mirrored.server.then(test::streams(feed));
  mirrored.start();
  REQUIRE(mirrored.is(State::Synced));
  REQUIRE(mirrored.until([&] { return mirrored.priority_of("a") == 7; }));
  for (int i = 1; i <= 20; ++i) feed->line(event("MODIFIED", odd("a", i, 10 + i)));
  REQUIRE(mirrored.until([&] { return mirrored.priority_of("a") == 20; }));
  feed->line(event("ADDED", odd("b", 1, 40)));  // which is not silenced by the many of the other
  REQUIRE(mirrored.until([&] { return mirrored.priority_of("b") == 1; }));
  REQUIRE(mirrored.told.size() == 2);
  CHECK(mirrored.told[0].find("shop/a: metadata.labels: ") != std::string::npos);
  CHECK(mirrored.told[1].find("shop/b: metadata.labels: ") != std::string::npos);
}

TEST_CASE("a source may go while it watches") {
  Mirrored mirrored;
  const auto feed = std::make_shared<test::Feed>();
  mirrored.server.then(test::answers(200, list(10, object("a", 1, 8))));
  mirrored.server.then(test::streams(feed));
  mirrored.start();
  REQUIRE(mirrored.is(State::Synced));
  feed->line(event("ADDED", object("b", 1, 11)));
  mirrored.source.reset();
  mirrored.client.reset();
  mirrored.reactor.restart();
  mirrored.reactor.run();
}

}  // namespace evictd::pods::api_server_source_test
