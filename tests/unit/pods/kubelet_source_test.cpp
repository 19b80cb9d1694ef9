#include "pods/kubelet_source.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

#include "cri/run.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"
#include "kube/api_server.hpp"
#include "pods/combine.hpp"
#include "pods/fake_source.hpp"

namespace evictd::pods::kubelet_source_test {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using State = SpecSourceStatus::State;

std::string list(const std::string& items) {
  return R"({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": )" + items + "}";
}

std::string item(const std::string& name, int priority) {
  return fmt::format(R"({{"metadata": {{"name": "{0}", "namespace": "shop", "uid": "uid-{0}"}},
                          "spec": {{"priority": {1}, "containers": [{{"name": "main"}}]}}}})",
                     name, priority);
}

/// A source that asks the server; every hour, unless told otherwise.
struct Asking : test::HeardSpecs {
  asio::io_context reactor{1};
  asio::thread_pool pool{1};
  KubeletSource source;

  Asking(const std::string& url, KubeletSourceOptions options, const std::string& token = {},
         const std::string& authorities = {})
      : source{reactor.get_executor(), pool.get_executor(), pool.get_executor(),
               fixture::value_of(kube::url_credentials(url, token, authorities)), options} {
    source.start(*this);
  }
  ~Asking() {
    source.stop();
    pool.join();
  }

  bool until(const std::function<bool()>& done) { return test::run_until(reactor, done); }
  bool is(State state) {
    return until([&] { return source.status().state == state; });
  }
};

constexpr KubeletSourceOptions seldom{.interval = 1h, .least_interval = 1ms};
constexpr KubeletSourceOptions often{.interval = 1ms, .least_interval = 1ms, .retry = {.first = 1ms, .longest = 5ms}};

}  // namespace

TEST_CASE("the kubelet is asked for its pods with a token over TLS, by the authority it is known by") {
  const test::Authority authority;
  fixture::Tree tree{{fixture::file("token", "secret\n"), fixture::file("ca.crt", authority.certificate())}};
  test::ApiServer kubelet{test::ServerTls{.identity = authority.issue()}};
  kubelet.then(test::answers(200, list("[" + item("web", 7) + "," + item("db", 8) + "]")));
  Asking asking{kubelet.url(), seldom, tree.path("token"), tree.path("ca.crt")};
  REQUIRE(asking.is(State::Synced));
  REQUIRE(asking.source.pods()->size() == 2);
  CHECK(asking.source.pods()->at(0)->key() == "shop/web");
  CHECK(asking.source.pods()->at(0)->priority == 7);
  CHECK(kubelet.lines() == std::vector<std::string>{"GET /pods"});
  CHECK(kubelet.asked().at(0).header("authorization") == "Bearer secret");
}

TEST_CASE("a kubelet that another authority signed for is not believed") {
  const test::Authority right;
  const test::Authority wrong{"somebody else"};
  fixture::Tree tree{{fixture::file("ca.crt", right.certificate())}};
  test::ApiServer kubelet{test::ServerTls{.identity = wrong.issue()}};
  Asking asking{kubelet.url(), seldom, {}, tree.path("ca.crt")};
  REQUIRE(asking.is(State::Stale));
  CHECK(asking.source.pods()->empty());
  CHECK(kubelet.asked().empty());
}

TEST_CASE("the read-only port is asked by http, again and again, and only another list is a change") {
  test::ApiServer kubelet;
  kubelet.otherwise(test::answers(200, list("[" + item("web", 7) + "]")));
  Asking asking{kubelet.url(), often};
  REQUIRE(asking.until([&] { return kubelet.asked().size() >= 5; }));
  CHECK(asking.changes == 1);
  kubelet.otherwise(test::answers(200, list("[" + item("web", 9) + "]")));
  REQUIRE(asking.until([&] { return asking.changes == 2; }));
  CHECK(asking.source.pods()->at(0)->priority == 9);
}

TEST_CASE("a kubelet that refuses, breaks off or talks nonsense makes the source stale until it answers again") {
  test::ApiServer kubelet;
  const auto good = test::answers(200, list("[" + item("web", 7) + "]"));
  kubelet.then(good);
  std::string why;
  SUBCASE("403") {
    kubelet.otherwise(test::refuses(403, "Forbidden", "no"));
    why = "/pods: 403 Forbidden: no";
  }
  SUBCASE("500") {
    kubelet.otherwise(test::answers(500, ""));
    why = "/pods: 500";
  }
  SUBCASE("no list") {
    kubelet.otherwise(test::answers(200, R"({"kind": "Status"})"));
    why = "/pods: its answer: is no list of pods";
  }
  SUBCASE("no JSON") {
    kubelet.otherwise(test::answers(200, "<html>"));
    why = "/pods: its answer: is not JSON: ";
  }
  SUBCASE("broken off") {
    kubelet.otherwise([](test::Exchange& exchange) { exchange.cut(); });
  }
  Asking asking{kubelet.url(), often};
  REQUIRE(asking.until([&] { return asking.changes == 1; }));
  REQUIRE(asking.is(State::Stale));
  CHECK(asking.source.status().error.starts_with(kubelet.url() + why));
  CHECK(asking.source.status().stale_since.has_value());
  CHECK(asking.source.pods()->size() == 1);
  CHECK(asking.told.size() == 1);
  kubelet.otherwise(good);
  CHECK(asking.is(State::Synced));
  CHECK(asking.changes == 1);
}

TEST_CASE("a pod that cannot be read is told, and the others are known") {
  test::ApiServer kubelet;
  kubelet.otherwise(test::answers(200, list(R"([{"metadata": {"name": "bad"}, "spec": {}},)" + item("web", 7) + "]")));
  Asking asking{kubelet.url(), often};
  REQUIRE(asking.until([&] { return kubelet.asked().size() >= 3; }));
  CHECK(asking.source.pods()->size() == 1);
  REQUIRE(asking.told.size() == 1);
  CHECK(asking.told[0].starts_with("its answer: items[0]"));
  CHECK(asking.source.status().state == State::Synced);
}

TEST_CASE(
    "a field that cannot be read costs itself and not the pod, and is told once, in whatever order the pods come") {
  test::ApiServer kubelet;
  const std::string odd =
      R"({"metadata": {"name": "odd", "uid": "u"}, "spec": {"priority": 7, "os": 7, "containers": [{"name": "m"}]}})";
  kubelet.then(test::answers(200, list("[" + odd + "," + item("web", 7) + "]")));
  kubelet.otherwise(test::answers(200, list("[" + item("web", 7) + "," + odd + "]")));
  Asking asking{kubelet.url(), often};
  REQUIRE(asking.until([&] { return kubelet.asked().size() >= 3; }));
  CHECK(asking.source.pods()->size() == 2);
  REQUIRE(asking.told.size() == 1);
  CHECK(asking.told[0].starts_with("its answer: default/odd: spec.os: "));
}

TEST_CASE("a new pod is asked about at once, while it is asked as well, but not of a kubelet that does not answer") {
  test::ApiServer kubelet;
  kubelet.then(test::answers(200, list("[]")));
  kubelet.then(test::answers(200, list("[" + item("web", 7) + "]")));
  Asking asking{kubelet.url(), seldom};
  REQUIRE(asking.is(State::Synced));
  asking.source.look();
  REQUIRE(asking.until([&] { return asking.changes == 1; }));
  CHECK(asking.source.pods()->size() == 1);

  kubelet.then(test::answers(200, list("[" + item("web", 8) + "]")));
  kubelet.then(test::answers(200, list("[" + item("web", 9) + "]")));
  asking.source.look();
  REQUIRE(asking.until([&] { return kubelet.asked().size() == 3; }));  // under way, or just answered
  asking.source.look();
  REQUIRE(asking.until([&] { return asking.source.pods()->at(0)->priority == 9; }));

  kubelet.stop_listening();
  asking.source.look();
  REQUIRE(asking.is(State::Stale));
  const auto tries = asking.told.size();
  for (int i = 0; i < 100; ++i) asking.source.look();
  asking.reactor.restart();
  asking.reactor.poll();
  CHECK(asking.told.size() == tries);
}

TEST_CASE("an answer that takes too long is a failure") {
  test::ApiServer kubelet;
  kubelet.otherwise([](test::Exchange& exchange) { exchange.hold(); });
  auto options = seldom;
  options.deadline = 100ms;
  Asking asking{kubelet.url(), options};
  CHECK(asking.is(State::Stale));
}

TEST_CASE("static pods come with the uid that CRI has, so they are found") {
  test::ApiServer kubelet;
  kubelet.then(test::answers(200, list(R"([{"metadata": {"name": "proxy-n1", "namespace": "kube-system", "uid": "h1",
      "annotations": {"kubernetes.io/config.hash": "h1", "kubernetes.io/config.source": "file"}},
      "spec": {"priority": 2000001000, "priorityClassName": "system-node-critical",
               "containers": [{"name": "main", "resources": {"requests": {"memory": "64Mi"}}}]}}])")));
  Asking asking{kubelet.url(), seldom};
  REQUIRE(asking.is(State::Synced));
  core::Pod listed{.name_space = "kube-system", .name = "proxy-n1", .uid = "h1"};
  const SpecIndex index{{SpecOrigin::Kubelet, asking.source.pods()}, "n1"};
  const auto found = combine(std::make_shared<const core::Pod>(listed), std::span(&index, 1), TrustedNamespaces{{"*"}});
  CHECK(found->priority_class_name == "system-node-critical");
  CHECK(core::is_critical(*found));
}

TEST_CASE("a source may go while it asks") {
  test::ApiServer kubelet;
  kubelet.otherwise([](test::Exchange& exchange) { exchange.hold(); });
  asio::io_context reactor{1};
  asio::thread_pool pool{1};
  test::HeardSpecs heard;
  {
    KubeletSource source{reactor.get_executor(), pool.get_executor(), pool.get_executor(),
                         fixture::value_of(kube::url_credentials(kubelet.url(), "", "")), seldom};
    source.start(heard);
    REQUIRE(test::run_until(reactor, [&] { return !kubelet.asked().empty(); }));
  }
  reactor.restart();
  reactor.run();
  pool.join();
  CHECK(heard.changes == 0);
  CHECK(heard.told.empty());
}

}  // namespace evictd::pods::kubelet_source_test
