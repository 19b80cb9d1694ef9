#include "app/place_watch.hpp"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "async/side_thread.hpp"
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

fixture::Entry usual_socket() { return dir("run", {dir("containerd", {file("containerd.sock", "")})}); }

/// Of one that runs; without a runtime it names none.
Configuration kubelet_of(const std::string& runtime = {}) {
  Configuration configuration;
  configuration.is_told = true;
  if (runtime.empty()) return configuration;
  configuration.kubelet_sources.values.container_runtime_endpoint = runtime;
  configuration.kubelet_sources.origins["containerRuntimeEndpoint"] = "the flags of kubelet (pid 812)";
  return configuration;
}

/// A machine that has just booted, and what evictd takes it for.
struct Booted {
  std::vector<fixture::Entry> there{};        // besides what every node has
  std::string endpoint{config::to_be_found};  // cri.endpoint
  std::string recalled{};                     // the runtime that a kubelet named before evictd started
  Tree tree{node_with(there)};
  boost::asio::io_context reactor{};
  Configuration start{found()};
  std::vector<std::string> moved{};
  PlaceWatch watch{reactor.get_executor(),
                   std::make_shared<async::SideThread>(reactor.get_executor(), "places"),
                   start,
                   [this](const std::string& what) { moved.push_back(what); },
                   {.between = 1ms, .root = tree.path("")}};

  static std::vector<fixture::Entry> node_with(const std::vector<fixture::Entry>& there) {
    auto entries = fixture::v2_node(machine, 0, {});
    entries.insert(entries.end(), there.begin(), there.end());
    return entries;
  }
  [[nodiscard]] Configuration found() const {
    Configuration configuration;
    configuration.agent.node = fixture::settings_for(tree);
    configuration.agent.node.pods_cgroup = config::to_be_found;
    configuration.agent.cri.endpoint = endpoint;
    configuration.written = configuration.agent;
    configuration.kubelet_sources = kubelet_of(recalled).kubelet_sources;
    configuration.recalled = !recalled.empty();
    auto discovery = discover(configuration.agent, configuration.kubelet_sources, {}, tree.path(""));
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

TEST_CASE(
    "a runtime that was found is the wrong one where a kubelet that comes later names another, which is told once") {
  const std::string rancher = "unix:///run/k3s/containerd/containerd.sock";
  Booted node{.there = {dir("run", {dir("containerd", {file("containerd.sock", "")}),  // Docker's containerd, say
                                    dir("k3s", {dir("containerd", {file("containerd.sock", "")})})})}};
  REQUIRE_FALSE(node.start.guesses.endpoint);
  node.watch.kubelet_says(kubelet_of());
  node.reactor.run_for(20ms);
  CHECK(node.moved.empty());

  node.watch.kubelet_says(kubelet_of(rancher));
  node.watch.kubelet_says(kubelet_of(rancher));
  REQUIRE(test::run_until(node.reactor, [&] { return !node.moved.empty(); }));
  CHECK(
      node.moved.front() ==
      "cri.endpoint is " + rancher +
          " by now, and not unix:///run/containerd/containerd.sock, where it was expected: evictd ends, to be started "
          "anew");
  node.watch.kubelet_says(kubelet_of(rancher));
  node.reactor.restart();
  node.reactor.run_for(20ms);
  CHECK(node.moved.size() == 1);
}

TEST_CASE(
    "a runtime that only a kubelet knows of is told of once that names it, while none of the usual ones is there") {
  Booted node;
  REQUIRE(node.start.guesses.endpoint);
  node.watch.kubelet_says(kubelet_of("unix:///srv/own.sock"));
  node.reactor.run_for(20ms);
  CHECK(node.moved.empty());
  node.tree.add("", dir("srv", {file("own.sock", "")}));
  REQUIRE(test::run_until(node.reactor, [&] { return !node.moved.empty(); }));
  CHECK(node.moved.front().starts_with("cri.endpoint is unix:///srv/own.sock by now, "));
}

TEST_CASE("a runtime that is not there does not take the place of one that is, and is told of once it comes") {
  Booted node{.there = {usual_socket()}};
  node.watch.kubelet_says(kubelet_of("unix:///srv/own.sock"));  // as of a kubelet that fails for want of it
  node.reactor.run_for(20ms);
  CHECK(node.moved.empty());
  node.tree.add("", dir("srv", {file("own.sock", "")}));
  REQUIRE(test::run_until(node.reactor, [&] { return !node.moved.empty(); }));
  CHECK(node.moved.front().starts_with("cri.endpoint is unix:///srv/own.sock by now, "));
}

TEST_CASE("another name of the socket in use is no other runtime, be the socket there or not") {
  const auto other_name = kubelet_of("unix:///var/run/containerd/containerd.sock");  // as kubeadm has it
  for (const bool is_there : {true, false}) {
    CAPTURE(is_there);
    Booted node{.there = {is_there ? usual_socket() : dir("run"), dir("var")}};
    std::filesystem::create_directory_symlink("../run", node.tree.path("var/run"));
    REQUIRE(node.start.guesses.endpoint != is_there);
    node.have_pods("kubepods");
    node.watch.kubelet_says(other_name);
    node.watch.kubelet_says(other_name);
    REQUIRE(node.ends());
    CHECK(node.moved.empty());
    // It has been looked into.
    node.watch.kubelet_says(other_name);
    node.reactor.restart();
    CHECK(node.reactor.run() == 0);
  }
}

TEST_CASE("a runtime that the configuration names is in use whatever a kubelet says") {
  Booted node{.endpoint = "unix:///run/mine.sock"};
  node.watch.kubelet_says(kubelet_of("unix:///run/k3s/containerd/containerd.sock"));
  node.have_pods("kubepods");
  REQUIRE(node.ends());
  CHECK(node.moved.empty());
}

TEST_CASE("a runtime that was recalled is in use until a kubelet names another, or none while another is there") {
  const std::string own = "unix:///srv/own.sock";
  for (const std::string& named : {std::string{"unix:///run/k3s/containerd/containerd.sock"}, std::string{}}) {
    CAPTURE(named);
    Booted node{.recalled = own};
    REQUIRE(node.start.agent.cri.endpoint == own);
    node.have_pods("kubepods");
    auto nobodys = kubelet_of("unix:///run/containerd/containerd.sock");  // a file by which no kubelet runs
    nobodys.is_told = false;
    node.tree.add("", usual_socket());
    node.watch.kubelet_says(nobodys);
    node.watch.kubelet_says(kubelet_of(own));
    node.watch.kubelet_says(nobodys);
    node.reactor.run_for(20ms);
    CHECK(node.moved.empty());

    node.watch.kubelet_says(kubelet_of(named));
    node.reactor.restart();
    node.reactor.run_for(20ms);
    node.tree.add("run", dir("k3s", {dir("containerd", {file("containerd.sock", "")})}));
    REQUIRE(test::run_until(node.reactor, [&] { return !node.moved.empty(); }));
    const auto other = named.empty() ? "unix:///run/containerd/containerd.sock" : named;
    CHECK(node.moved.front().starts_with("cri.endpoint is " + other + " by now, and not " + own + ", "));
  }
}

TEST_CASE("a runtime that was recalled is the usual one where no kubelet names any, and then nobody looks any more") {
  Booted node{.there = {usual_socket()}, .recalled = "unix:///run/containerd/containerd.sock"};
  node.have_pods("kubepods");
  node.watch.kubelet_says(kubelet_of());
  REQUIRE(node.ends());
  CHECK(node.moved.empty());
}

TEST_CASE("where nothing was guessed nobody looks") {
  const Configuration named;
  boost::asio::io_context reactor;
  const PlaceWatch watch{reactor.get_executor(), nullptr, named, [](const std::string&) { CHECK(false); }};
  CHECK(reactor.run() == 0);
}

}  // namespace evictd::app::place_watch_test
