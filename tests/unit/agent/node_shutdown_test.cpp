#include "agent/node_shutdown.hpp"

#include <doctest/doctest.h>
#include <evictd.pb.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cri/run.hpp"
#include "fixture/pods.hpp"
#include "fixture/tree.hpp"
#include "host/logind_stand_in.hpp"
#include "host/system_bus.hpp"
#include "support/skip.hpp"

// The whole of a shutdown but the pods, over a real dbus-daemon with a stand-in for logind.

namespace evictd::agent::node_shutdown_test {
namespace {

using namespace std::chrono_literals;

core::PodPtr pod_of(std::string name, std::int32_t priority, std::int64_t grace) {
  auto pod = fixture::with_priority(fixture::pod(std::move(name)), priority);
  pod.termination_grace_period_seconds = grace;
  return std::make_shared<const core::Pod>(std::move(pod));
}

/// A bus with logind on it, and the place for the state; evictds come and go.
struct Host {
  fixture::Tree tree;
  test::SystemBus bus{tree.path()};
  test::LogindStandIn logind{bus, 60s};

  Host() { ::setenv("DBUS_SYSTEM_BUS_ADDRESS", bus.address().c_str(), 1); }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  ~Host() { ::unsetenv("DBUS_SYSTEM_BUS_ADDRESS"); }
};

/// An agent whose pods end when a test says so.
struct Pods {
  core::PodList pods{pod_of("web", 0, 30), pod_of("vital", 2'000'000'000, 2), pod_of("batch", -1, 5)};
  bool knows_pods = true;
  std::map<std::string, core::Duration> ends;  // the last that a pod was given
  std::vector<std::string> order;
  std::map<std::string, std::move_only_function<void()>> done;
  std::vector<std::string> told;
  std::vector<kube::NodeShutdown> cluster;  // what it was told
};

class Hooks final : public ShutdownHooks {
 public:
  explicit Hooks(Pods& pods) : pods_{pods} {}

  boost::asio::awaitable<Result<core::PodListPtr>> list_pods() override {
    if (!pods_.knows_pods) co_return fail("no container runtime");
    co_return core::PodListPtr{std::make_shared<const core::PodList>(pods_.pods)};
  }
  void end(const core::PodPtr& pod, core::Duration grace, std::move_only_function<void()> ended) override {
    pods_.order.push_back(pod->name);
    pods_.ends[pod->name] = grace;
    pods_.done[pod->name] = std::move(ended);
  }
  void tell(const v1::NodeShutdown& detail, const std::string& /*message*/) override {
    auto line = detail.phase();
    for (const auto& pod : detail.left()) line += " left:" + pod.name();
    pods_.told.push_back(line);
  }
  void tell_cluster(const kube::NodeShutdown& shutdown) override { pods_.cluster.push_back(shutdown); }

 private:
  Pods& pods_;
};

/// An evictd with such pods. When it goes, that is as if it was killed: nothing is told or done.
struct Evictd : Pods {
  boost::asio::io_context reactor{1};
  NodeShutdown shutdown;

  explicit Evictd(const Host& host)
      : shutdown{reactor.get_executor(),
                 {{0, 20s}, {2'000'000'000, 10s}},
                 {.reconnect_interval = 20ms},
                 {},
                 host.tree.path("shutdown.json").native(),
                 std::make_unique<Hooks>(*this)} {
    boost::asio::co_spawn(reactor, shutdown.run(), boost::asio::detached);
  }

  void end(const std::string& pod) {
    done.at(pod)();
    std::erase_if(pods, [&](const core::PodPtr& known) { return known->name == pod; });
  }
  bool until(const std::function<bool()>& condition) { return test::run_until(reactor, condition); }
  bool is(const std::string& state) {
    return until([&] { return shutdown.status().state() == state; });
  }
};

using Names = std::vector<std::string>;

TEST_SUITE_BEGIN("bus");

TEST_CASE("a shutdown waits until all pods have ended, by rising priority, and the node takes none meanwhile") {
  SKIP_IF(test::SystemBus::missing());
  Host host;
  Evictd evictd{host};
  REQUIRE(evictd.is("ready"));
  CHECK(evictd.shutdown.status().inhibit_delay().seconds() == 60);
  CHECK(evictd.shutdown.status().grace_period().seconds() == 30);
  CHECK_FALSE(evictd.shutdown.shutting_down());

  host.logind.prepare_for_shutdown(true);
  REQUIRE(evictd.until([&] { return evictd.order == Names{"web", "batch"}; }));
  CHECK(evictd.ends == std::map<std::string, core::Duration>{{"web", 20s}, {"batch", 5s}});
  CHECK(evictd.shutdown.shutting_down());
  CHECK(evictd.shutdown.status().state() == "shutting down");
  CHECK(host.logind.locks() == 1);
  evictd.end("web");
  evictd.end("batch");
  REQUIRE(evictd.until([&] { return evictd.order == Names{"web", "batch", "vital"}; }));
  CHECK(evictd.ends["vital"] == 2s);
  CHECK(host.logind.locks() == 1);
  evictd.end("vital");
  REQUIRE(evictd.is("ended"));
  CHECK(host.logind.locks() == 0);
  CHECK(evictd.told == Names{"begun", "ended"});
  CHECK(evictd.shutdown.shutting_down());

  host.logind.prepare_for_shutdown(false);
  REQUIRE(evictd.is("ready"));
  CHECK_FALSE(evictd.shutdown.shutting_down());
  CHECK(host.logind.locks() == 1);
  CHECK(evictd.told == Names{"begun", "ended", "cancelled"});
  CHECK_FALSE(std::filesystem::exists(host.tree.path("shutdown.json")));
}

TEST_CASE("pods that are not known yet are asked for again") {
  SKIP_IF(test::SystemBus::missing());
  Host host;
  Evictd evictd{host};
  REQUIRE(evictd.is("ready"));
  evictd.knows_pods = false;
  host.logind.prepare_for_shutdown(true);
  REQUIRE(evictd.is("shutting down"));
  CHECK(evictd.order.empty());
  evictd.knows_pods = true;
  REQUIRE(evictd.until([&] { return evictd.order.size() == 2; }));
}

TEST_CASE("an evictd that is killed in the middle is followed by one that goes on where it was") {
  SKIP_IF(test::SystemBus::missing());
  Host host;
  core::PodList left;
  {
    Evictd evictd{host};
    REQUIRE(evictd.is("ready"));
    host.logind.prepare_for_shutdown(true);
    REQUIRE(evictd.until([&] { return evictd.order.size() == 2; }));
    evictd.end("batch");
    REQUIRE(evictd.until([&] { return evictd.shutdown.status().state() == "shutting down"; }));
    evictd.reactor.run_for(50ms);
    left = evictd.pods;
  }
  CHECK(host.logind.locks() == 0);
  left.push_back(pod_of("batch", -1, 5));  // its sandbox is still listed
  Evictd evictd{host};
  CHECK(evictd.shutdown.shutting_down());
  evictd.pods = left;
  REQUIRE(evictd.until([&] { return !evictd.order.empty(); }));
  CHECK(evictd.order == Names{"web"});
  CHECK(evictd.ends["web"] < 20s);
  CHECK(evictd.told == Names{"begun"});
  evictd.end("web");
  REQUIRE(evictd.until([&] { return evictd.order == Names{"web", "vital"}; }));
  evictd.end("vital");
  REQUIRE(evictd.is("ended"));
  CHECK(evictd.told == Names{"begun", "ended"});
}

TEST_CASE("after a restart the node takes pods again if the shutdown was called off meanwhile") {
  SKIP_IF(test::SystemBus::missing());
  Host host;
  {
    Evictd evictd{host};
    REQUIRE(evictd.is("ready"));
    host.logind.prepare_for_shutdown(true);
    REQUIRE(evictd.is("shutting down"));
  }
  host.logind.prepare_for_shutdown(false);
  Evictd evictd{host};
  CHECK(evictd.shutdown.shutting_down());
  REQUIRE(evictd.is("ready"));
  CHECK(evictd.told == Names{"cancelled"});
  CHECK(evictd.order.empty());
}

TEST_CASE("the pods end on while the bus is away; back again, a shutdown that logind forgot is off") {
  SKIP_IF(test::SystemBus::missing());
  Host host;
  Evictd evictd{host};
  REQUIRE(evictd.is("ready"));
  host.logind.prepare_for_shutdown(true);
  REQUIRE(evictd.until([&] { return evictd.order.size() == 2; }));
  host.bus.stop();
  REQUIRE(evictd.until([&] { return !evictd.shutdown.status().error().empty(); }));
  evictd.end("web");
  evictd.end("batch");
  REQUIRE(evictd.until([&] { return evictd.order.size() == 3; }));
  CHECK(host.logind.locks() == 1);

  host.bus.start();
  const test::LogindStandIn after{host.bus, 60s};
  REQUIRE(evictd.is("ready"));
  CHECK(evictd.told == Names{"begun", "cancelled"});
  CHECK(evictd.until([&] { return after.locks() == 1; }));
}

TEST_CASE("the cluster is told of a shutdown and of its end; after a restart it is the same shutdown") {
  SKIP_IF(test::SystemBus::missing());
  Host host;
  std::optional<core::Instant> begun;
  {
    Evictd evictd{host};
    REQUIRE(evictd.is("ready"));
    REQUIRE(evictd.cluster.size() == 1);
    CHECK_FALSE(evictd.cluster[0].pending);
    CHECK_FALSE(evictd.cluster[0].begun.has_value());
    host.logind.prepare_for_shutdown(true);
    REQUIRE(evictd.until([&] { return evictd.cluster.size() == 2; }));
    CHECK(evictd.cluster[1].pending);
    begun = evictd.cluster[1].begun;
    REQUIRE(begun.has_value());
    REQUIRE(evictd.until([&] { return evictd.order.size() == 2; }));
  }
  Evictd evictd{host};
  REQUIRE(evictd.until([&] { return evictd.cluster.size() == 1; }));  // not before logind answered
  CHECK(evictd.cluster[0].pending);
  CHECK(evictd.cluster[0].begun == begun);
  REQUIRE(evictd.until([&] { return !evictd.order.empty(); }));
  host.logind.prepare_for_shutdown(false);
  REQUIRE(evictd.until([&] { return evictd.cluster.size() == 2; }));
  CHECK_FALSE(evictd.cluster[1].pending);
  CHECK(evictd.cluster[1].begun == begun);
}

TEST_CASE("without logind the state is failed, and says why") {
  SKIP_IF(test::SystemBus::missing());
  fixture::Tree tree;
  ::setenv("DBUS_SYSTEM_BUS_ADDRESS", ("unix:path=" + tree.path("no-bus").native()).c_str(), 1);
  boost::asio::io_context reactor{1};
  Pods pods;
  NodeShutdown shutdown{reactor.get_executor(),       {{0, 20s}}, {}, {}, tree.path("state").native(),
                        std::make_unique<Hooks>(pods)};
  CHECK(shutdown.status().state() == "failed");
  CHECK(shutdown.status().error() == "systemd-logind has not answered yet");
  boost::asio::co_spawn(reactor, shutdown.run(), boost::asio::detached);
  REQUIRE(test::run_until(reactor, [&] { return shutdown.status().error().starts_with("no system bus: "); }));
  CHECK(shutdown.status().state() == "failed");
  CHECK_FALSE(shutdown.shutting_down());
  ::unsetenv("DBUS_SYSTEM_BUS_ADDRESS");
}

TEST_SUITE_END();

}  // namespace
}  // namespace evictd::agent::node_shutdown_test
