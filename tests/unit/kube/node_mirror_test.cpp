#include "kube/node_mirror.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

#include "cri/run.hpp"
#include "fixture/result.hpp"
#include "kube/api_server.hpp"
#include "kube/client.hpp"

namespace evictd::kube::node_mirror_test {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

std::string node(const std::string& zone, int version) {
  return fmt::format(R"({{"metadata": {{"name": "n/1", "resourceVersion": "{}", "labels": {{"zone": "{}"}}}}}})",
                     version, zone);
}

std::string list(int version, const std::string& items) {
  return fmt::format(R"({{"kind": "NodeList", "metadata": {{"resourceVersion": "{}"}}, "items": [{}]}})", version,
                     items);
}

std::string event(const std::string& type, const std::string& object) {
  return fmt::format(R"({{"type": "{}", "object": {}}})", type, object);
}

}  // namespace

TEST_CASE("the node's own object is listed and watched; it stays while the API server is away, and goes when deleted") {
  test::ApiServer server;
  const auto feed = std::make_shared<test::Feed>();
  const auto later = std::make_shared<test::Feed>();
  server.then(test::answers(200, list(1, node("a", 1))));
  server.then(test::streams(feed));
  server.then(test::answers(200, list(9, node("c", 8))));
  server.then(test::streams(later));
  asio::io_context reactor{1};
  asio::thread_pool pool{1};
  {
    Client client{reactor.get_executor(), pool.get_executor(),
                  fixture::value_of(url_credentials(server.url(), "", ""))};
    NodeMirror mirror{
        reactor.get_executor(), pool.get_executor(), client, "n/1", {.retry = {.first = 1ms, .longest = 10ms}}};
    const auto is_in = [&](const std::string& zone) {
      return test::run_until(reactor, [&] { return mirror.node() && mirror.node()->labels.at("zone") == zone; });
    };
    CHECK_FALSE(mirror.node().has_value());
    mirror.start();
    REQUIRE(is_in("a"));
    CHECK(server.lines().at(0).starts_with("GET /api/v1/nodes?fieldSelector=metadata.name%3Dn%2F1&"));
    feed->line(event("MODIFIED", node("b", 2)));
    REQUIRE(is_in("b"));
    feed->line(event("MODIFIED", R"({"metadata": {"resourceVersion": "3"}})"));
    REQUIRE(test::run_until(reactor, [&] { return mirror.unreadable().has_value(); }));
    CHECK(mirror.unreadable()->message == "the node read from the API server has no name");
    CHECK(mirror.node()->labels.at("zone") == "b");

    feed->line(event("ERROR", R"({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})"));
    REQUIRE(is_in("c"));
    server.stop_listening();
    later->cut();
    reactor.restart();
    reactor.run_for(100ms);
    CHECK(mirror.node().has_value());
    server.then(test::refuses(410, "Expired", "too old"));
    server.then(test::answers(200, list(12, "")));
    server.listen_again();
    REQUIRE(test::run_until(reactor, [&] { return !mirror.node(); }));
    mirror.stop();
  }
  pool.join();
}

}  // namespace evictd::kube::node_mirror_test
