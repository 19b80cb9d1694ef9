#include "agent/pod_usage.hpp"

#include <api.pb.h>
#include <doctest/doctest.h>

#include <array>
#include <boost/asio/io_context.hpp>

#include "async/spawn.hpp"
#include "async/worker.hpp"
#include "core/eviction_order.hpp"
#include "cri/fake_runtime.hpp"
#include "cri/run.hpp"
#include "fixture/node_tree.hpp"
#include "fixture/pods.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"
#include "node/disk_walkers.hpp"
#include "pods/pod_builder.hpp"

namespace evictd::agent::pod_usage_test {
namespace {

namespace v1 = ::runtime::v1;
using fixture::dir;
using fixture::file;
using fixture::Tree;
using fixture::value_of;

/// A node of cgroup v1 whose runtime tells nothing.
struct Node {
  Tree tree{fixture::v1_node(
      {.total = 1 << 30, .free = 1 << 29, .available = 1 << 29}, {},
      {dir("kubepods",
           fixture::v1_memory({.usage = 1000},
                              {dir("podhog", fixture::v1_memory({.usage = 100})),
                               dir("shared", {dir("c1", fixture::v1_memory({.usage = 30})),
                                              dir("c2", fixture::v1_memory({.usage = 40, .inactive_file = 5}))})}))})};
  config::NodeSettings settings = fixture::settings_for(tree);
  node::CgroupHierarchy hierarchy = value_of(node::CgroupHierarchy::detect(settings.cgroup_mount));
  node::NodeMemory memory = value_of(node::NodeMemory::open(hierarchy, settings));
  node::PodCgroups cgroups{hierarchy};
  boost::asio::io_context reactor{1};
  node::PodDisk disk{reactor.get_executor(), [] { return nullptr; }, {}};
  cri::Client runtime{reactor.get_executor(), "unix:///nowhere"};
  pods::CriPods pods{runtime, 1000, pods::TrustedNamespaces{{}}};
  PodUsageReader reader{{.cgroups = cgroups, .memory = memory, .disk = disk, .runtime = runtime, .pods = pods}};

  std::vector<std::string> ranked(core::Signal signal) {
    const auto list = std::make_shared<const core::PodList>(
        fixture::pods({fixture::pod("blind"), fixture::pod("shared"), fixture::pod("hog")}));
    const std::vector eligibilities(list->size(), core::Eligibility::candidate);
    const auto usage =
        core::is_memory(signal) ? reader.leading_memory(list, eligibilities, 3) : reader.processes(*list);
    std::vector<std::string> result;
    for (const auto& ranked : core::rank(signal, *list, usage, {}))
      result.push_back(ranked.pod->name + " " + std::to_string(ranked.usage) + (ranked.has_stats ? "" : " unknown"));
    return result;
  }
};

/// Does at once what it is given.
struct PromptWorker final : async::Worker {
  void run(std::move_only_function<void()> work, std::move_only_function<void()> done) override {
    work();
    done();
  }
};

/// The pod a as a runtime lists it, with 1000 bytes of logs of its container "main" and 200 of "init".
struct Disk {
  Disk() {
    runtime.put(test::sandbox("s", "a", "a"), test::sandbox_json("/kubepods/poda"));
    runtime.start();
  }

  /// A container with a writable layer. Each is created after the one before.
  void put(const std::string& id, const std::string& name, v1::ContainerState state, std::uint64_t layer) {
    runtime.put(test::container(id, "s", name, state, ++created), test::container_json(1000));
    v1::ContainerStats stats;
    stats.mutable_attributes()->set_id(id);
    stats.mutable_writable_layer()->mutable_used_bytes()->set_value(layer);
    runtime.put(stats);
  }
  /// What is known of the pod once it was measured.
  core::PodUsage measured() {
    REQUIRE(test::run(node.reactor, pods.refresh()).has_value());
    const auto measure = [&]() -> boost::asio::awaitable<bool> {
      co_await reader.measure_disk(pods.pods(), Usage::Layers::told);
      co_return true;
    };
    REQUIRE(test::run(node.reactor, measure()));
    const auto usage = reader.known_disk(*pods.pods());
    REQUIRE(usage.size() == 1);
    REQUIRE(usage.front().has_value());
    return *usage.front();
  }

  Node node;
  Tree logs{dir("shop_a_a", {dir("main", {file("0.log", std::string(600, 'x')), file("1.log", std::string(400, 'x'))}),
                             dir("init", {file("0.log", std::string(200, 'x'))})})};
  test::FakeRuntime runtime;
  std::int64_t created = 0;
  cri::Client client{node.reactor.get_executor(), runtime.endpoint(), test::patience};
  pods::CriPods pods{client, 1000, pods::TrustedNamespaces{{}}};
  node::PodDisk disk{node.reactor.get_executor(),
                     [] { return std::make_unique<PromptWorker>(); },
                     {.roots = {.logs = logs.path(), .kubelet = logs.path("none")}}};
  PodUsageReader reader{
      {.cgroups = node.cgroups, .memory = node.memory, .disk = disk, .runtime = client, .pods = pods}};
};

/// The pod "slow" as well, with more logs than one turn suffices for; layers can be walked, when the test says so.
struct SlowDisk : Disk {
  SlowDisk() {
    runtime.put(test::sandbox("s-slow", "slow", "slow"), test::sandbox_json("/kubepods/podslow"));
    logs.add("", dir("shop_slow_slow", {dir("main")}));
    for (int i = 0; i < 500; ++i) logs.add("shop_slow_slow/main", file(std::to_string(i), ""));
  }
  /// Counts down when it is measured.
  void spawn_measure(core::PodListPtr list, Usage::Layers layers, int& running) {
    ++running;
    async::spawn(
        node.reactor.get_executor(),
        [](PodUsageReader& held, core::PodListPtr given, Usage::Layers which,
           int& count) -> boost::asio::awaitable<void> {
          co_await held.measure_disk(std::move(given), which);
          --count;
        }(held_reader, std::move(list), layers, running),
        "measuring");
  }
  [[nodiscard]] bool has_turn() const { return !workers.made.empty() && !workers.made[0]->empty(); }
  /// The slice of whoever's turn it is.
  void let_go() {
    REQUIRE(test::run_until(node.reactor, [&] { return has_turn(); }));
    workers.let_go(0);
    node.reactor.restart();
    node.reactor.poll();
  }

  Tree host{dir("1", {file("mountinfo", "1 2 0:3 / /run/c1/rootfs rw - overlay overlay rw,upperdir=/layer/fs\n"),
                      dir("root", {dir("layer", {dir("fs", {file("filler", std::string(300'000, 'x'))})})})})};
  test::HeldWorkers workers;
  node::PodDisk held_disk{node.reactor.get_executor(),
                          workers.maker(),
                          {.roots = {.logs = logs.path(),
                                     .kubelet = logs.path("none"),
                                     .layers = std::make_shared<node::LayerMounts>(host.path())},
                           .slice = {}}};
  PodUsageReader held_reader{
      {.cgroups = node.cgroups, .memory = node.memory, .disk = held_disk, .runtime = client, .pods = pods}};
};

}  // namespace

TEST_CASE("the logs of a container count once, however often it was started, and its layer is that of the last start") {
  Disk scene;
  scene.put("c0", "init", v1::CONTAINER_EXITED, 50'000);
  scene.put("c1", "main", v1::CONTAINER_EXITED, 70'000);
  scene.put("c2", "main", v1::CONTAINER_RUNNING, 100'000);
  const auto once = scene.measured();
  REQUIRE(once.containers.size() == 1);
  CHECK(once.containers.front().name == "main");
  CHECK(once.containers.front().rootfs.bytes == 100'000);
  const auto logs = once.containers.front().logs.bytes;
  REQUIRE(logs.has_value());
  CHECK(*logs >= 1000);
  CHECK(once.ephemeral >= 100'000 + *logs);
  CHECK(once.ephemeral < 100'000 + 2 * *logs);

  SUBCASE("also while none runs") {
    scene.put("c2", "main", v1::CONTAINER_EXITED, 100'000);
    const auto between = scene.measured();
    REQUIRE(between.containers.size() == 2);
    CHECK(between.containers.front().name == "init");
    CHECK(between.containers.back().name == "main");
    CHECK(between.containers.back().rootfs.bytes == 100'000);
    CHECK(between.containers.back().logs.bytes == logs);
  }
}

TEST_CASE("a layer that was walked for a decision counts while that waits for others, whoever measures meanwhile") {
  SlowDisk scene;
  scene.put("c1", "main", v1::CONTAINER_RUNNING, 1'000);
  REQUIRE(test::run(scene.node.reactor, scene.pods.refresh()).has_value());
  const auto all = scene.pods.pods();
  REQUIRE(all->size() == 2);
  const auto a = std::make_shared<const core::PodList>(
      core::PodList{*std::ranges::find(*all, "a", [](const auto& pod) { return pod->uid; })});
  const auto rootfs = [&] { return *scene.held_reader.known_disk(*a).front()->containers.at(0).rootfs.bytes; };
  int decisions = 0;
  int limits = 0;
  scene.spawn_measure(all, Usage::Layers::walked, decisions);
  while (!scene.held_disk.known("a")) scene.let_go();
  const auto first = scene.held_disk.known("a");
  const auto walked = rootfs();
  CHECK(walked >= 300'000);

  scene.held_disk.mark_dirty("a");
  scene.spawn_measure(a, Usage::Layers::told, limits);
  // The walk is asked for once the runtime has told what it knows.
  const std::array names{node::PodName{.uid = "a", .name_space = "shop", .name = "a"}};
  REQUIRE(test::run_until(scene.node.reactor, [&] { return scene.held_disk.due(names, {}).empty(); }));
  while (limits > 0) scene.let_go();
  REQUIRE(decisions == 1);
  CHECK(scene.held_disk.known("a") != first);
  CHECK(rootfs() == walked);
  while (decisions > 0) scene.let_go();
  CHECK(rootfs() == walked);
}

TEST_CASE("the pods that are known to hold the most are walked first") {
  SlowDisk scene;
  scene.put("c1", "main", v1::CONTAINER_RUNNING, 1'000);
  scene.runtime.put(test::container("c2", "s-slow", "main", v1::CONTAINER_RUNNING, 7), test::container_json(1000));
  v1::ContainerStats stats;
  stats.mutable_attributes()->set_id("c2");
  std::string first;
  std::uint64_t bytes = 0;
  SUBCASE("one") { first = "slow", bytes = 2'000; }
  SUBCASE("the other") { first = "a", bytes = 500; }
  stats.mutable_writable_layer()->mutable_used_bytes()->set_value(bytes);
  scene.runtime.put(stats);
  REQUIRE(test::run(scene.node.reactor, scene.pods.refresh()).has_value());
  for (int i = 0; i < 490; ++i) scene.logs.remove("shop_slow_slow/main/" + std::to_string(i));
  int running = 0;
  scene.spawn_measure(scene.pods.pods(), Usage::Layers::told, running);
  scene.let_go();
  CHECK(scene.held_disk.known(first));
  CHECK_FALSE(scene.held_disk.known(first == "a" ? "slow" : "a"));
  while (running > 0) scene.let_go();
}

TEST_CASE("a pod whose sandbox the runtime tells nothing of does not rank before others for lack of numbers") {
  Node node;
  node.tree.write("cgroup/memory/kubepods/podhog/cgroup.procs", "1\n2\n3\n");
  node.tree.write("cgroup/memory/kubepods/shared/c1/cgroup.procs", "4\n");
  node.tree.write("cgroup/memory/kubepods/shared/c2/cgroup.procs", "5\n");
  node.cgroups.sync(std::array{node::PodCgroup{"blind", ""}, node::PodCgroup{"hog", "/kubepods/podhog"},
                               node::PodCgroup{"shared", "", {"/kubepods/shared/c1", "/kubepods/shared/c2"}}});
  CHECK(node.ranked(core::Signal::MemoryAvailable) == std::vector<std::string>{"hog 100", "shared 65", "blind 0"});
  CHECK(node.ranked(core::Signal::PidAvailable) == std::vector<std::string>{"hog 3", "shared 2", "blind 0"});
}

TEST_CASE("what pods held when they were listed is told again without a reading, as a bound") {
  Node node;
  node.cgroups.sync(std::array{node::PodCgroup{"blind", ""}, node::PodCgroup{"hog", "/kubepods/podhog"},
                               node::PodCgroup{"shared", "", {"/kubepods/shared/c1", "/kubepods/shared/c2"}}});
  const auto list = std::make_shared<const core::PodList>(
      fixture::pods({fixture::pod("blind"), fixture::pod("shared"), fixture::pod("hog")}));
  node.reader.prepare(list);
  node.tree.write("cgroup/memory/kubepods/podhog/memory.usage_in_bytes", "900\n");
  const auto usage = node.reader.memory_as_listed(list);
  REQUIRE(usage.size() == 3);
  CHECK(usage[0]->working_set == 0);
  CHECK(usage[1]->working_set == 70);
  CHECK(usage[2]->working_set == 100);
  for (const auto& pod : usage) CHECK(pod->at_most);
}

TEST_CASE("of a list that is prepared again those that held the most are read, and the others a part each time") {
  constexpr std::size_t count = 200;
  Node node;
  const auto name = [](std::size_t place) { return "p" + std::to_string(place); };
  const auto write = [&](std::size_t place, int bytes) {
    node.tree.write("cgroup/memory/kubepods/pod" + name(place) + "/memory.usage_in_bytes", std::to_string(bytes));
  };
  core::PodList pods;
  std::vector<node::PodCgroup> cgroups;
  for (std::size_t place = 0; place < count; ++place) {
    node.tree.add("cgroup/memory/kubepods", dir("pod" + name(place), fixture::v1_memory({.usage = 0})));
    write(place, 1000 + static_cast<int>(place));
    pods.push_back(fixture::pods({fixture::pod(name(place))}).front());
    cgroups.push_back({name(place), "/kubepods/pod" + name(place)});
  }
  node.cgroups.sync(cgroups);
  const auto list = std::make_shared<const core::PodList>(std::move(pods));
  const auto held = [&](std::size_t place) { return node.reader.memory_as_listed(list)[place]->working_set; };
  node.reader.prepare_again(list);
  CHECK(held(0) == 1000);
  CHECK(held(199) == 1199);

  constexpr std::size_t others = count - 64;
  for (std::size_t place = 0; place < count; ++place) write(place, place < others ? 5 : 5000);
  node.reader.prepare_again(list);
  std::size_t known = 0;
  for (std::size_t place = 0; place < others; ++place) known += held(place) == 5 ? 1U : 0U;
  CHECK(known == others / 4);
  for (std::size_t place = others; place < count; ++place) CHECK(held(place) == 5000);
  for (int more = 0; more < 3; ++more) node.reader.prepare_again(list);
  for (std::size_t place = 0; place < others; ++place) CHECK(held(place) == 5);
}

}  // namespace evictd::agent::pod_usage_test
