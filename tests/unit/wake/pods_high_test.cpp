#include "wake/pods_high.hpp"

#include <doctest/doctest.h>
#include <sys/fsuid.h>

#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <optional>

#include "fixture/node_tree.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"
#include "node/memory_high.hpp"
#include "os/now.hpp"
#include "wake/heard_sources.hpp"

namespace evictd::wake::pods_high_test {
namespace {

using namespace std::chrono_literals;
using fixture::dir;
using fixture::file;
using fixture::value_of;

constexpr std::int64_t MiB = std::int64_t{1} << 20;

std::vector<fixture::Entry> pods_files() {
  auto files = fixture::v2_memory({.usage = 300 * MiB});
  files.push_back(file("memory.high", "max\n"));
  files.push_back(file("memory.events.local", "high 0\n"));
  return files;
}

/// Its files announce nothing.
struct Node : test::HeardSources, PodsHigh::Listener {
  fixture::Tree tree{fixture::v2_node({.total = 4096 * MiB, .free = 2048 * MiB, .available = 2048 * MiB}, 0,
                                      {dir("kubepods", pods_files())})};
  node::CgroupHierarchy hierarchy = value_of(node::CgroupHierarchy::detect(tree.path("cgroup").native()));
  boost::asio::io_context reactor{1};
  Wakes wakes{reactor.get_executor()};
  int looks = 0;
  std::optional<PodsHigh> pods;

  Node() {
    wakes.listen(*this);
    pods.emplace(reactor.get_executor(), wakes, hierarchy,
                 PodsHigh::Options{.source = core::WakeSource::Fence, .cgroup = "/kubepods", .note = tree.path("note")},
                 *this);
  }
  void high_exceeded() override {}
  void look_again() override { ++looks; }
  void set(std::int64_t level) { pods->adjust(FenceGoal{.usage = 300 * MiB, .level = level * MiB}, "nothing to do"); }
  [[nodiscard]] std::optional<std::int64_t> high() const {
    const auto bytes = value_of(node::read_memory_high(value_of(hierarchy.memory("/kubepods"))));
    return bytes ? std::optional(*bytes / MiB) : std::nullopt;
  }
};

}  // namespace

TEST_CASE("what is set is noted, marked and lifted with it") {
  Node node;
  CHECK(std::filesystem::exists(node.tree.path("note")));
  CHECK_FALSE(node.pods->high().has_value());
  node.set(400);
  CHECK(node.high() == 400);
  CHECK(node.pods->high() == 400 * MiB);
  CHECK(value_of(node::read_fence_mark(value_of(node.hierarchy.memory("/kubepods")))).has_value());
  CHECK(node.pods->status().name == "fence /kubepods");
  CHECK(node.pods->status().state == "armed");
  CHECK(node.pods->status().level == 400 * MiB);
  node.set(500);
  CHECK(node.pods->status().rearms == 1);

  node.pods->adjust(std::nullopt, {});
  CHECK(node.high() == 500);
  node.pods->adjust(FenceGoal{.lifted = true}, "nothing to do");
  CHECK_FALSE(node.high().has_value());
  CHECK(node.pods->status().state == "nothing to do");

  node.set(400);
  node.pods.reset();
  CHECK_FALSE(node.high().has_value());
  CHECK_FALSE(std::filesystem::exists(node.tree.path("note")));
}

TEST_CASE("nothing is set where the kernel's word would not be heard") {
  Node node;
  node.tree.remove("cgroup/kubepods/memory.events.local");
  node.set(400);
  CHECK_FALSE(node.high().has_value());
  node.tree.add("cgroup/kubepods", file("memory.events", "high 0\n"));
  node.set(400);
  CHECK(node.high() == 400);
}

TEST_CASE("while the loop hangs it is lifted for it, and is set anew by the loop; a value of someone else stays") {
  Node node;
  node.set(400);
  let_go_while_loop_hangs(node.hierarchy, "/kubepods");
  CHECK_FALSE(node.high().has_value());
  node.set(400);
  CHECK(node.high() == 400);
  CHECK(node.pods->status().state == "armed");

  // It hung in the middle of setting it, so its value comes after that: it is known as its own.
  let_go_while_loop_hangs(node.hierarchy, "/kubepods");
  node.tree.write("cgroup/kubepods/memory.high", std::to_string(400 * MiB) + "\n");
  node.pods->adjust(FenceGoal{.lifted = true}, "nothing to do");
  CHECK_FALSE(node.high().has_value());

  node.tree.write("cgroup/kubepods/memory.high", std::to_string(300 * MiB) + "\n");
  let_go_while_loop_hangs(node.hierarchy, "/kubepods");
  CHECK(node.high() == 300);
}

TEST_CASE("after a self-test that failed it is registered anew, once") {
  Node node;
  node.pods->rearm_all();
  node.set(400);  // it was not registered before
  CHECK(node.pods->status().re_registrations == 0);
  node.pods->rearm_all();
  node.set(400);
  node.set(400);
  CHECK(node.pods->status().re_registrations == 1);
  CHECK(node.recoveries.size() == 1);
}

TEST_CASE("it looks again once, at the last time that was given") {
  Node node;
  node.pods->look_again_at(os::now() + 1h);
  node.pods->look_again_at(os::now());
  node.reactor.run_for(50ms);
  CHECK(node.looks == 1);
}

TEST_CASE("where evictd has not the rights it is off, which is no failure") {
  Node node;
  const auto directory = node.tree.path("cgroup/kubepods");
  std::filesystem::permissions(directory, std::filesystem::perms::none);
  ::setfsuid(65534);  // of this thread: root may do everything; where nobody is root, it is refused and not needed
  node.set(400);
  ::setfsuid(0);
  std::filesystem::permissions(directory, std::filesystem::perms::owner_all);
  CHECK(node.pods->status().state.starts_with("off: "));
  CHECK(node.failures.empty());
  node.set(400);
  CHECK(node.pods->status().state == "armed");
}

TEST_CASE("what an earlier evictd left goes at the next start, and only that") {
  Node node;
  node.set(400);
  lift_old_fence(node.hierarchy, "/kubepods", node.tree.path("note"));
  CHECK_FALSE(node.high().has_value());
  CHECK_FALSE(std::filesystem::exists(node.tree.path("note")));
  node.tree.write("cgroup/kubepods/memory.high", "209715200\n");
  lift_old_fence(node.hierarchy, "/kubepods", node.tree.path("note"));
  CHECK(node.high() == 200);
  lift_old_fence(node.hierarchy, "/nothing", node.tree.path("note"));
}

TEST_CASE("what an earlier evictd left where the configuration had the pods by then goes as well") {
  Node node;
  node.set(400);
  REQUIRE(node.high() == 400);
  lift_old_fence(node.hierarchy, "/nothing", node.tree.path("note"));
  CHECK_FALSE(node.high().has_value());
  CHECK_FALSE(std::filesystem::exists(node.tree.path("note")));
}

TEST_CASE("a note names one more cgroup at most, and an old or broken one none") {
  const fixture::Tree tree{
      {file("good", "/pods\n/others\n"), file("known", "/kubepods\n"), file("empty", ""), file("broken", "pods\n")}};
  using Paths = std::vector<std::string>;
  CHECK(noted_cgroups({"/kubepods"}, tree.path("good")) == Paths{"/kubepods", "/pods"});
  for (const auto* name : {"known", "empty", "broken", "none"})
    CHECK(noted_cgroups({"/kubepods"}, tree.path(name)) == Paths{"/kubepods"});
}

}  // namespace evictd::wake::pods_high_test
