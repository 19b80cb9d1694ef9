#include "wake/memory_fence.hpp"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <optional>

#include "fixture/node_tree.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"
#include "node/memory_high.hpp"

namespace evictd::wake::memory_fence_test {
namespace {

using namespace std::chrono_literals;
using fixture::dir;
using fixture::file;
using fixture::value_of;

constexpr std::int64_t MiB = std::int64_t{1} << 20;

/// A v2 node of 1 GiB that uses 400 MiB, 300 of them in pods. Its files announce nothing: what is seen here is what the
/// fence does of itself.
struct Node {
  fixture::Tree tree{fixture::v2_node(
      {.total = 4096 * MiB, .free = 2048 * MiB, .available = 2048 * MiB}, 0,
      {dir("lab", fixture::v2_memory({.usage = 400 * MiB, .limit = 1024 * MiB}, {dir("kubepods", [] {
                                       auto files = fixture::v2_memory({.usage = 300 * MiB});
                                       files.push_back(file("memory.high", "max\n"));
                                       files.push_back(
                                           file("memory.events.local", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n"));
                                       return files;
                                     }())}))})};
  config::NodeSettings settings = fixture::settings_for(tree, "/lab");
  node::CgroupHierarchy hierarchy = value_of(node::CgroupHierarchy::detect(settings.cgroup_mount));
  node::NodeMemory memory = value_of(node::NodeMemory::open(hierarchy, settings));
  boost::asio::io_context reactor{1};
  Wakes wakes{reactor.get_executor()};
  std::optional<MemoryFence> fence;

  explicit Node(bool among_pods = false) {
    fence.emplace(reactor.get_executor(), wakes, hierarchy, memory, tree.path("fence"), among_pods);
  }

  void arm(bool releasing = false) {
    Arming arming;
    arming.levels = {{.signal = core::Signal::MemoryAvailable, .hard = true, .threshold = 100 * MiB}};
    arming.releasing = releasing;
    fence->arm(arming);
  }
  [[nodiscard]] std::optional<std::int64_t> high() const {
    const auto pods = value_of(hierarchy.memory("/lab/kubepods"));
    const auto bytes = value_of(node::read_memory_high(pods));
    return bytes ? std::optional(*bytes / MiB) : std::nullopt;
  }
  [[nodiscard]] std::string state() const { return fence->status().at(0).state; }
};

}  // namespace

TEST_CASE("armed, the fence stands where the pods' growth would meet the threshold, and goes with its source") {
  Node node;
  CHECK_FALSE(node.high().has_value());
  node.arm();
  CHECK(node.high() == 300 + (1024 - 400 - 100));
  CHECK(node.state() == "armed");
  CHECK(node.fence->status().at(0).name == "fence /lab/kubepods");
  CHECK(node.fence->status().at(0).level == 824 * MiB);
  CHECK(std::filesystem::exists(node.tree.path("fence")));
  node.fence.reset();
  CHECK_FALSE(node.high().has_value());
  CHECK_FALSE(std::filesystem::exists(node.tree.path("fence")));
}

TEST_CASE("it is lifted while a victim's memory is coming back, and stands again afterwards") {
  Node node;
  node.arm();
  node.arm(true);
  CHECK_FALSE(node.high().has_value());
  CHECK(node.state().starts_with("lifted: "));
  node.arm();
  CHECK(node.high() == 824);
}

TEST_CASE("without a wake-up it follows file cache and what others than pods use") {
  Node node;
  node.arm();
  node.tree.write("cgroup/lab/memory.current", "576716800\n");  // 550 MiB, 150 more outside of the pods
  node.reactor.run_for(1500ms);
  CHECK(node.high() == 674);
  node.tree.write("cgroup/lab/memory.stat", fixture::v2_stat(50 * MiB));
  node.reactor.run_for(1500ms);
  CHECK(node.high() == 724);
}

TEST_CASE("someone else's memory.high is left alone while the fence stands aside, and to the end") {
  Node node;
  node.arm();
  node.tree.write("cgroup/lab/kubepods/memory.high", "209715200\n");
  node.arm();
  CHECK(node.high() == 200);
  CHECK(node.state() == "off: memory.high of /lab/kubepods is 209715200, set by someone else");
  node.fence.reset();
  CHECK(node.high() == 200);
}

TEST_CASE("among the pods evictd sets no fence that would hold itself") {
  Node node{true};
  node.arm();
  CHECK_FALSE(node.high().has_value());
  CHECK(node.state() == "off: evictd runs among the pods, and would be held as they are");
}

TEST_CASE("a pods' cgroup that goes and comes back has its fence again") {
  Node node;
  node.arm();
  node.tree.remove("cgroup/lab/kubepods");
  node.arm();
  CHECK(node.state() == "waiting: no such cgroup");
  auto files = fixture::v2_memory({.usage = 300 * MiB});
  files.push_back(file("memory.high", "max\n"));
  files.push_back(file("memory.events", "high 0\n"));
  node.tree.add("cgroup/lab", dir("kubepods", files));
  node.arm();
  CHECK(node.high() == 824);
}

}  // namespace evictd::wake::memory_fence_test
