#include "app/place_watch.hpp"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "cri/run.hpp"
#include "fixture/node_tree.hpp"
#include "fixture/tree.hpp"

namespace evictd::app::place_watch_test {
namespace {

using namespace std::chrono_literals;
using fixture::dir;
using fixture::file;
using fixture::Tree;

constexpr fixture::Machine machine{.total = 4 << 20, .free = 2 << 20, .available = 2 << 20};

/// A machine that has just booted, and what evictd takes it for.
struct Booted {
  Tree tree{fixture::v2_node(machine, 0, {})};
  boost::asio::io_context reactor{};
  Configuration start{found()};
  std::vector<std::string> moved{};
  PlaceWatch watch{reactor.get_executor(),
                   start,
                   [this](const std::string& what) { moved.push_back(what); },
                   {.between = 1ms, .root = tree.path("")}};

  [[nodiscard]] Configuration found() const {
    Configuration configuration;
    configuration.agent.node = fixture::settings_for(tree);
    configuration.agent.node.pods_cgroup = config::to_be_found;
    auto discovery = discover(configuration.agent, {}, {}, tree.path(""));
    configuration.agent = std::move(discovery.agent);
    configuration.guesses = discovery.guesses;
    return configuration;
  }
  void have_pods(const std::string& name) const { tree.add("cgroup", dir(name, fixture::v2_memory({}))); }
  /// Until it looks no more: it keeps the reactor busy as long as there is a guess.
  bool ends() {
    return test::run_until(reactor, [this] { return !moved.empty() || reactor.stopped(); });
  }
};

}  // namespace

TEST_CASE("a runtime's socket that appears elsewhere than it was expected is told of, once") {
  Booted node;
  REQUIRE(node.start.guesses.endpoint);
  node.tree.add("", dir("run", {dir("k3s", {dir("containerd", {file("containerd.sock", "")})})}));
  REQUIRE(test::run_until(node.reactor, [&] { return !node.moved.empty(); }));
  CHECK(node.moved.front() ==
        "cri.endpoint is unix:///run/k3s/containerd/containerd.sock by now, and not "
        "unix:///run/containerd/containerd.sock, where it was expected: evictd ends, to be started anew");
  node.reactor.run_for(20ms);
  CHECK(node.moved.size() == 1);
}

TEST_CASE("pods of the other cgroup driver than was expected are told of") {
  Booted node;
  REQUIRE(node.start.guesses.pods_cgroup);
  node.have_pods("kubepods.slice");
  REQUIRE(test::run_until(node.reactor, [&] { return !node.moved.empty(); }));
  CHECK(node.moved.front().starts_with("node.podsCgroup is kubepods.slice by now, and not kubepods, "));
}

TEST_CASE("what appears where it was expected is no news, and then nobody looks any more") {
  Booted node;
  node.have_pods("kubepods");
  node.reactor.run_for(20ms);  // the socket is still to come
  CHECK_FALSE(node.reactor.stopped());
  node.tree.add("", dir("run", {dir("containerd", {file("containerd.sock", "")})}));
  REQUIRE(node.ends());
  CHECK(node.moved.empty());
}

TEST_CASE("where nothing was guessed nobody looks") {
  const Configuration named;
  boost::asio::io_context reactor;
  const PlaceWatch watch{reactor.get_executor(), named, [](const std::string&) { CHECK(false); }};
  CHECK(reactor.run() == 0);
}

}  // namespace evictd::app::place_watch_test
