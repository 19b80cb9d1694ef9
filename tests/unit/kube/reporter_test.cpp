#include "kube/reporter.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <mutex>
#include <optional>

#include "fixture/tree.hpp"
#include "kube/api_server.hpp"
#include "kube/client.hpp"
#include "kube/model_server.hpp"
#include "kube/reactor.hpp"

namespace evictd::kube::reporter_test {

namespace asio = boost::asio;
namespace kube = evictd::kube;
using namespace evictd::test;
using evictd::fixture::ModelServer;
using namespace std::chrono_literals;

namespace {

kube::Eviction eviction(const std::string& name) {
  return {.name_space = "default",
          .name = name,
          .uid = name + "-uid",
          .message = {"The node was low on resource: memory. ", {}},
          .time = kube::WallTime{}};
}

/// The real client and queue against a real server, which keeps a model of the objects.
struct Cluster {
  ApiServer server;
  std::mutex mutex;  // around model: handlers run on threads of the server's
  ModelServer model;
  KubeReactor reactor;
  kube::Client client;
  std::vector<std::string> told;
  kube::Reporter reporter;

  explicit Cluster(kube::ReportOptions options = {}) : Cluster{std::move(options), std::nullopt, {}} {}
  Cluster(kube::ReportOptions options, std::optional<ServerTls> tls, const kube::Credentials& known)
      : server{std::move(tls)},
        client{reactor.context.get_executor(), reactor.workers.get_executor(), with_url(known, server.url())},
        reporter{reactor.context.get_executor(), quick(std::move(options)),
                 [this](kube::Request request) { return client.send(std::move(request), patience); },
                 [this](evictd::os::LogLevel, const std::string& line) { told.push_back(line); }} {
    server.otherwise([this](Exchange& exchange) { answer(exchange); });
    for (const auto* name : {"a", "b"})
      model.pods[std::string("default/") + name] = {.uid = std::string(name) + "-uid"};
    asio::co_spawn(reactor.context, reporter.run(), asio::detached);
  }

  /// Everything but where the server is.
  static kube::Credentials with_url(kube::Credentials credentials, const std::string& url) {
    credentials.server = credentials_for(url).server;
    return credentials;
  }
  static kube::ReportOptions quick(kube::ReportOptions options) {
    options.node = "node-1";
    options.retry = {.first = 1ms, .longest = 20ms, .lasting = {}};
    return options;
  }

  kube::Response apply(const Asked& asked) {
    const std::scoped_lock lock{mutex};
    return model.handle({.method = asked.method, .target = asked.target, .body = asked.body});
  }
  void answer(Exchange& exchange) {
    const auto response = apply(exchange.asked());
    exchange.answer(response.status, response.body);
  }
  bool all_sent() {
    return reactor.run_until([this] { return reporter.status().waiting == 0; });
  }
  /// Waits for drain(); the coroutine has no result.
  void drain(evictd::core::Duration time) {
    bool done = false;
    asio::co_spawn(reactor.context, reporter.drain(time), [&](const std::exception_ptr&) { done = true; });
    REQUIRE(reactor.run_until([&] { return done; }));
  }
  [[nodiscard]] std::vector<std::string> log() {
    const std::scoped_lock lock{mutex};
    return model.log;
  }
};

const std::vector<std::string> status_and_event{"status a-uid", "event a-uid"};

}  // namespace

TEST_CASE("an eviction is told by a patch of the status and an Event") {
  Cluster cluster;
  cluster.reporter.evicted(eviction("a"));
  CHECK(cluster.reporter.status().waiting == 2);  // told, and nobody waited
  REQUIRE(cluster.all_sent());
  CHECK(cluster.log() == status_and_event);
  const auto asked = cluster.server.asked();
  CHECK(asked.at(0).line() == "PATCH /api/v1/namespaces/default/pods/a/status");
  CHECK(asked.at(0).header("content-type") == "application/strategic-merge-patch+json");
  CHECK(asked.at(1).line() == "POST /api/v1/namespaces/default/events");
  CHECK(asked.at(1).header("content-type") == "application/json");
  CHECK(cluster.told.empty());
}

TEST_CASE("a connection that breaks after a request was applied leads to no second report") {
  Cluster cluster;
  const auto apply_and_cut = [&](Exchange& exchange) {
    static_cast<void>(cluster.apply(exchange.asked()));
    exchange.cut();
  };
  cluster.server.then(apply_and_cut);                                          // the status
  cluster.server.then([&](Exchange& exchange) { cluster.answer(exchange); });  // the status again
  cluster.server.then(apply_and_cut);                                          // the Event
  cluster.reporter.evicted(eviction("a"));
  REQUIRE(cluster.all_sent());
  CHECK(cluster.log() == status_and_event);
  CHECK(cluster.server.lines() == std::vector<std::string>{"PATCH /api/v1/namespaces/default/pods/a/status",
                                                           "PATCH /api/v1/namespaces/default/pods/a/status",
                                                           "POST /api/v1/namespaces/default/events",
                                                           "POST /api/v1/namespaces/default/events"});
  CHECK(cluster.reporter.status().written.events == 1);
}

TEST_CASE("429 with Retry-After and 500 are tried again") {
  Cluster cluster;
  cluster.server.then(refuses(429, "TooManyRequests", "slow down", {{"Retry-After", "1"}}));
  cluster.server.then(refuses(500, "InternalError", "etcd"));
  const auto begin = std::chrono::steady_clock::now();
  cluster.reporter.evicted(eviction("a"));
  REQUIRE(cluster.all_sent());
  CHECK(std::chrono::steady_clock::now() - begin >= 1s);
  CHECK(cluster.log() == status_and_event);
  CHECK(cluster.server.lines().size() == 4);
  CHECK(cluster.told.front() == "reports to the API server wait: slow down (429)");
}

TEST_CASE("an API server that is away during the eviction gets the report when it is back, once") {
  Cluster cluster;
  cluster.server.stop_listening();
  cluster.reporter.evicted(eviction("a"));
  REQUIRE(cluster.reactor.run_until([&] { return !cluster.told.empty(); }));
  cluster.reporter.evicted(eviction("b"));
  CHECK(cluster.reporter.status().waiting == 4);
  cluster.server.listen_again();
  REQUIRE(cluster.all_sent());
  CHECK(cluster.log() == std::vector<std::string>{"status a-uid", "event a-uid", "status b-uid", "event b-uid"});
  CHECK(cluster.told.size() == 2);
  CHECK(cluster.told.back().starts_with("the API server takes reports again"));
}

TEST_CASE("the node's conditions and taints follow while evictions are told") {
  Cluster cluster{{.node_conditions = kube::NodeConditionMode::Conditions}};
  cluster.reporter.node_conditions({evictd::core::NodeCondition::MemoryPressure});
  cluster.reporter.threshold_met("memory");
  cluster.reporter.evicted(eviction("a"));
  REQUIRE(cluster.all_sent());
  CHECK(cluster.log() ==
        std::vector<std::string>{"conditions", "taints", "event node-1", "status a-uid", "event a-uid"});
  CHECK(cluster.model.node.conditions.at("MemoryPressure") == "True");
}

TEST_CASE("before the end there is a while for what waits, and no more than that") {
  Cluster cluster;
  cluster.reporter.evicted(eviction("a"));
  cluster.drain(patience);
  CHECK(cluster.log() == status_and_event);
  cluster.server.stop_listening();
  cluster.reporter.evicted(eviction("b"));
  cluster.drain(50ms);
  CHECK(cluster.reporter.status().waiting == 2);
}

TEST_CASE("a token that expired stops nothing for longer than until there is a new one") {
  const Authority authority;
  const evictd::fixture::Tree tree{evictd::fixture::file("token", "old")};
  kube::Credentials credentials;
  credentials.authorities.text = authority.certificate();
  credentials.token.file = tree.path("token");
  Cluster cluster{{}, ServerTls{.identity = authority.issue({})}, credentials};
  cluster.server.otherwise([&](Exchange& exchange) {
    if (exchange.asked().header("authorization") == "Bearer new") return cluster.answer(exchange);
    exchange.refuse(401, "Unauthorized", "Unauthorized");
  });
  cluster.reporter.evicted(eviction("a"));
  REQUIRE(cluster.reactor.run_until([&] { return cluster.server.lines().size() >= 3; }));
  CHECK(cluster.log().empty());
  CHECK(cluster.told == std::vector<std::string>{"reports to the API server wait: the API server does not accept "
                                                 "evictd's credentials: Unauthorized (401)"});
  tree.write("token", "new");
  REQUIRE(cluster.all_sent());
  CHECK(cluster.log() == status_and_event);
}

TEST_CASE("another pod of that name, answered as 409 or as 422, stays untouched") {
  for (const bool as_invalid : {false, true}) {
    Cluster cluster{{.report = kube::ReportMode::Delete}};
    cluster.model.refuses_uid_as_invalid = as_invalid;
    cluster.model.pods["default/a"].uid = "successor";
    cluster.reporter.evicted(eviction("a"));
    REQUIRE(cluster.all_sent());
    CHECK(cluster.log() == std::vector<std::string>{"event a-uid"});
  }
}

TEST_CASE("a kubelet that writes Running over the status of an evicted pod, whenever it does, is not believed") {
  enum class Moment { before_the_answer, right_after, after_one_second, after_five_seconds };
  for (const auto moment :
       {Moment::before_the_answer, Moment::right_after, Moment::after_one_second, Moment::after_five_seconds}) {
    CAPTURE(static_cast<int>(moment));
    Cluster cluster;
    const auto overwrite = [&] {
      const std::scoped_lock lock{cluster.mutex};
      cluster.model.overwrite("default/a");
    };
    const auto is_evicted = [&] {
      const std::scoped_lock lock{cluster.mutex};
      const auto& pod = cluster.model.pods.at("default/a");
      return pod.phase == "Failed" && pod.reason == "Evicted";
    };
    if (moment == Moment::before_the_answer)
      cluster.server.then([&](Exchange& exchange) {
        const auto response = cluster.apply(exchange.asked());
        overwrite();
        exchange.answer(response.status, response.body);
      });
    cluster.reporter.evicted(eviction("a"));
    REQUIRE(cluster.all_sent());
    if (moment == Moment::right_after) overwrite();
    const auto wait = [&](std::chrono::milliseconds time) {
      const auto end = std::chrono::steady_clock::now() + time;
      REQUIRE(cluster.reactor.run_until([&] { return std::chrono::steady_clock::now() >= end; }));
    };
    if (moment == Moment::after_one_second || moment == Moment::after_five_seconds) {
      wait(moment == Moment::after_one_second ? 1s : 5s);
      overwrite();
      cluster.reporter.seen("a-uid", "Running", "");  // the watch shows it
    }
    REQUIRE(cluster.reactor.run_until([&] { return cluster.reporter.status().written.statuses_again == 1; }));
    REQUIRE(cluster.all_sent());
    CHECK(is_evicted());
    CHECK(cluster.log() == std::vector<std::string>{"status a-uid", "event a-uid", "status a-uid"});
  }
}

TEST_CASE("a shutdown is told while an API server that does not answer holds nobody up") {
  Cluster cluster{{.node_conditions = kube::NodeConditionMode::Conditions}};
  cluster.reporter.node_shutdown({});
  cluster.reporter.node_conditions({});
  REQUIRE(cluster.all_sent());
  cluster.server.stop_listening();
  const auto begun = evictd::core::Instant{std::chrono::steady_clock::now()};
  cluster.reporter.node_shutdown({.pending = true, .begun = begun});
  CHECK(cluster.reporter.status().waiting == 2);  // told, and nobody waited
  cluster.drain(50ms);
  CHECK(cluster.reporter.status().waiting == 2);
  cluster.server.listen_again();
  REQUIRE(cluster.all_sent());
  cluster.reporter.node_shutdown({.pending = false, .begun = begun});
  REQUIRE(cluster.all_sent());
  const std::scoped_lock lock{cluster.mutex};
  CHECK(cluster.model.log ==
        std::vector<std::string>{"conditions", "conditions", "event node-1", "conditions", "event node-1"});
  CHECK(cluster.model.node.conditions.at("Ready") == "True");
  CHECK(cluster.model.node.reasons.at("Ready") == "KubeletReady");
}

}  // namespace evictd::kube::reporter_test
