#include "node/node_memory.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "fixture/node_tree.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"

namespace evictd::node::node_memory_test {
namespace {

using core::Observation;
using core::Signal;
using fixture::dir;
using fixture::error_of;
using fixture::file;
using fixture::Memory;
using fixture::Tree;
using fixture::value_of;

constexpr std::int64_t GiB = std::int64_t{1} << 30;
constexpr std::int64_t MiB = std::int64_t{1} << 20;
const core::Instant now{std::chrono::seconds(100)};

/// A fake node and what evictd would read it by.
struct Node {
  explicit Node(const std::vector<fixture::Entry>& entries, std::string cgroup_root = "/")
      : tree(entries), settings(fixture::settings_for(tree, std::move(cgroup_root))) {}

  Tree tree;
  config::NodeSettings settings;
  CgroupHierarchy hierarchy = value_of(CgroupHierarchy::detect(settings.cgroup_mount));

  [[nodiscard]] Result<NodeMemory> open() const { return NodeMemory::open(hierarchy, settings); }
};

std::vector<fixture::Entry> v1(const Memory& lab, std::vector<fixture::Entry> below = {}) {
  return fixture::v1_node({.total = 4 * GiB, .free = 3 * GiB, .available = 3 * GiB},
                          {.usage = 1 * GiB, .inactive_file = 100 * MiB},
                          {dir("lab", fixture::v1_memory(lab, std::move(below)))});
}

/// 1 GiB of the machine is free, 2 GiB are processes' memory and files, and 1 GiB is the kernel's own: slab, huge
/// pages.
std::vector<fixture::Entry> v2() {
  return fixture::v2_node({.total = 4 * GiB, .free = GiB, .available = 2 * GiB, .anonymous = GiB, .file = GiB},
                          512 * MiB,
                          {dir("kubepods", fixture::v2_memory({.usage = GiB, .inactive_file = 0, .limit = 3 * GiB}))});
}

fixture::Entry kubepods(const Memory& memory) { return dir("kubepods", fixture::v1_memory(memory)); }

}  // namespace

TEST_CASE("available is the capacity less the working set, and the capacity is both together") {
  const Node node{v1({})};
  const auto reading = value_of(value_of(node.open()).read(now));
  CHECK(reading.capacity == 4 * GiB);
  CHECK(reading.observations[Signal::MemoryAvailable] ==
        Observation{.available = 3 * GiB + 100 * MiB, .capacity = 4 * GiB, .time = now});
}

TEST_CASE("a node that is a cgroup has the capacity of its limit, where that is smaller than the machine") {
  const Node small{v1({.usage = 600 * MiB, .inactive_file = 100 * MiB, .limit = GiB}), "/lab"};
  const auto reading = value_of(value_of(small.open()).read(now));
  CHECK(reading.capacity == GiB);
  CHECK(reading.observations[Signal::MemoryAvailable] ==
        Observation{.available = GiB - 500 * MiB, .capacity = GiB, .time = now});

  const Node large{v1({.usage = 0, .limit = 64 * GiB}), "/lab"};
  CHECK(value_of(value_of(large.open()).read(now)).capacity == 4 * GiB);
}

TEST_CASE("limits that are known are not read again, what memory is used always is") {
  const Node node{v1({.usage = 600 * MiB, .limit = GiB}, {kubepods({.usage = 300 * MiB, .limit = 800 * MiB})}), "/lab"};
  auto memory = value_of(node.open());
  CHECK(value_of(memory.read(now)).capacity == GiB);
  node.tree.write("cgroup/memory/lab/memory.limit_in_bytes", fmt::format("{}\n", 2 * GiB));
  node.tree.write("cgroup/memory/lab/kubepods/memory.limit_in_bytes", fmt::format("{}\n", GiB));
  node.tree.write("cgroup/memory/lab/memory.usage_in_bytes", fmt::format("{}\n", 700 * MiB));
  const auto reading = value_of(memory.read(now, NodeMemory::Limits::known));
  CHECK(reading.capacity == GiB);
  CHECK(reading.node.usage == 700 * MiB);
  CHECK(reading.pods->limit == 800 * MiB);
  CHECK(reading.observations[Signal::AllocatableMemoryAvailable]->capacity == 800 * MiB);
  CHECK(value_of(memory.read(now)).capacity == 2 * GiB);

  auto first = value_of(node.open());  // it has read no limit of the pods' cgroup yet
  CHECK(value_of(first.read(now, NodeMemory::Limits::known)).pods->limit == GiB);
}

TEST_CASE("a working set beyond the capacity leaves nothing, not less") {
  const Node node{v1({.usage = 2 * GiB, .limit = GiB}), "/lab"};
  const auto reading = value_of(value_of(node.open()).read(now));
  CHECK(reading.observations[Signal::MemoryAvailable]->available == 0);
}

TEST_CASE("a threshold's level is reached when just as much is available") {
  const Node node{v1({.usage = 600 * MiB, .inactive_file = 100 * MiB, .limit = GiB}), "/lab"};
  const auto reading = value_of(value_of(node.open()).read(now));
  CHECK(reading.node_level ==
        MemoryLevelInput{.capacity = GiB, .usage = 600 * MiB, .reclaimable = 100 * MiB, .incarnation = 1});
  CHECK(reading.node_level.level(150 * MiB) == GiB - 150 * MiB + 100 * MiB);

  // Once usage has grown to the level, with no more to reclaim, 150 MiB are left.
  node.tree.write("cgroup/memory/lab/memory.usage_in_bytes", std::to_string(reading.node_level.level(150 * MiB)));
  CHECK(value_of(value_of(node.open()).read(now)).observations[Signal::MemoryAvailable]->available == 150 * MiB);
}

TEST_CASE("the pods' cgroup gives the allocatable memory where it has a limit") {
  const Node node{v1({.limit = GiB}, {kubepods({.usage = 300 * MiB, .inactive_file = 50 * MiB, .limit = 800 * MiB})}),
                  "/lab"};
  const auto reading = value_of(value_of(node.open()).read(now));
  REQUIRE(reading.pods);
  CHECK(reading.pods->usage == 300 * MiB);
  CHECK(reading.observations[Signal::AllocatableMemoryAvailable] ==
        Observation{.available = 550 * MiB, .capacity = 800 * MiB, .time = now});
  CHECK(reading.pods_level ==
        MemoryLevelInput{.capacity = 800 * MiB, .usage = 300 * MiB, .reclaimable = 50 * MiB, .incarnation = 1});
}

TEST_CASE("an unlimited pods' cgroup cannot run short: no observation") {
  const Node node{v1({.limit = GiB}, {kubepods({.usage = 300 * MiB})}), "/lab"};
  const auto reading = value_of(value_of(node.open()).read(now));
  CHECK(reading.pods);
  CHECK_FALSE(reading.observations[Signal::AllocatableMemoryAvailable]);
  CHECK_FALSE(reading.pods_level);
}

TEST_CASE("a pods' cgroup that comes later is found, and found again after it went") {
  const Node node{v1({.limit = GiB}), "/lab"};
  auto memory = value_of(node.open());
  CHECK_FALSE(value_of(memory.read(now)).pods);

  node.tree.add("cgroup/memory/lab", kubepods({.usage = 1, .limit = 100}));
  CHECK(value_of(memory.read(now)).pods_level->incarnation == 1);
  CHECK(memory.pods_cgroup() == "/lab/kubepods");
}

TEST_CASE("what is wrong with the pods' cgroup does not cost the node its reading") {
  const Node node{v1({.limit = GiB}, {kubepods({.usage = 1, .limit = 100})}), "/lab"};
  auto memory = value_of(node.open());
  node.tree.write("cgroup/memory/lab/kubepods/memory.usage_in_bytes", "garbage\n");
  const auto reading = value_of(memory.read(now));
  CHECK(reading.observations[Signal::MemoryAvailable]);
  CHECK_FALSE(reading.pods);
  REQUIRE(reading.pods_error);
  CHECK(reading.pods_error->message ==
        "node.podsCgroup: " + node.tree.path("cgroup/memory/lab/kubepods/memory.usage_in_bytes").native() +
            ": \"garbage\" is not a number");
}

TEST_CASE("a node cgroup that is not there names the key and what to do") {
  const Node node{v1({}), "/foo"};
  CHECK(error_of(node.open()) == "node.cgroupRoot: no cgroup \"/foo\" in " + node.tree.path("cgroup/memory").native() +
                                     "; create it or correct the key");
}

TEST_CASE("garbage in the node's files is an error of the reading, and over with it") {
  const Node node{v1({.usage = 5, .limit = GiB}), "/lab"};
  auto memory = value_of(node.open());
  node.tree.write("cgroup/memory/lab/memory.usage_in_bytes", "garbage\n");
  CHECK(error_of(memory.read(now)) ==
        "node.cgroupRoot: " + node.tree.path("cgroup/memory/lab/memory.usage_in_bytes").native() +
            ": \"garbage\" is not a number");
  node.tree.write("cgroup/memory/lab/memory.usage_in_bytes", "6\n");
  CHECK(value_of(memory.read(now)).node.usage == 6);
}

TEST_CASE("a proc without meminfo names its key") {
  Node node{v1({})};
  node.settings.proc_mount = node.tree.path("cgroup").native();
  CHECK(error_of(node.open()) ==
        "node.procMount: " + node.tree.path("cgroup/meminfo").native() + ": No such file or directory");
}

TEST_CASE("cgroup v2: the root is measured by the machine's counters, its pods by their cgroup") {
  const Node node{v2()};
  const auto reading = value_of(value_of(node.open()).read(now));
  CHECK(reading.node == MemoryReading{.usage = 2 * GiB, .inactive_file = 512 * MiB});
  CHECK(reading.observations[Signal::MemoryAvailable] ==
        Observation{.available = 2 * GiB + 512 * MiB, .capacity = 4 * GiB, .time = now});
  CHECK(reading.observations[Signal::AllocatableMemoryAvailable]->available == 2 * GiB);
}

TEST_CASE("in memFree mode slab and huge pages are taken from what the root has available, and from nothing else") {
  Node node{v2()};
  node.settings.memory_available = config::MemoryAvailable::MemFree;
  const auto reading = value_of(value_of(node.open()).read(now));
  CHECK(reading.node == MemoryReading{.usage = 3 * GiB, .inactive_file = 512 * MiB});
  CHECK(reading.observations[Signal::MemoryAvailable] ==
        Observation{.available = GiB + 512 * MiB, .capacity = 4 * GiB, .time = now});
  CHECK(reading.observations[Signal::AllocatableMemoryAvailable]->available == 2 * GiB);
}

TEST_CASE("in memFree mode a node that has a usage of its own is measured by that") {
  Node node{v1({.usage = 600 * MiB, .inactive_file = 100 * MiB, .limit = GiB}), "/lab"};
  node.settings.memory_available = config::MemoryAvailable::MemFree;
  CHECK(value_of(value_of(node.open()).read(now)).observations[Signal::MemoryAvailable]->available == GiB - 500 * MiB);
}

TEST_CASE("in memAvailable mode the kernel's estimate is what is available, and levels follow it") {
  Node node{v1({})};
  node.settings.memory_available = config::MemoryAvailable::MemAvailable;
  node.tree.write("proc/meminfo", "MemTotal: 4194304 kB\nMemFree: 0 kB\nMemAvailable: 1048576 kB\n");
  const auto reading = value_of(value_of(node.open()).read(now));
  CHECK(reading.observations[Signal::MemoryAvailable] ==
        Observation{.available = GiB, .capacity = 4 * GiB, .time = now});
  // 1 GiB is used and 1 GiB available: after 850 MiB more of usage 174 MiB are left.
  CHECK(reading.node_level.level(174 * MiB) == 1 * GiB + 850 * MiB);
}

TEST_CASE("memAvailable is refused for a node that is a cgroup") {
  Node node{v1({}), "/lab"};
  node.settings.memory_available = config::MemoryAvailable::MemAvailable;
  CHECK(error_of(node.open()) ==
        "node.memoryAvailable: memAvailable is an estimate for the whole machine, not for \"/lab\"");
}

TEST_CASE("between readings a signal is read alone: exactly, or what is left at least") {
  const Node node{v1({.usage = 600 * MiB, .inactive_file = 100 * MiB, .limit = GiB},
                     {kubepods({.usage = 300 * MiB, .inactive_file = 50 * MiB, .limit = 800 * MiB})}),
                  "/lab"};
  auto memory = value_of(node.open());
  CHECK_FALSE(memory.available(Signal::MemoryAvailable));  // the capacity is not known yet
  CHECK(value_of(memory.read(now)).node_level.level_without_reclaimable(150 * MiB) == GiB - 150 * MiB);
  CHECK(memory.available(Signal::MemoryAvailable) == GiB - 500 * MiB);
  CHECK(memory.available_at_least(Signal::MemoryAvailable) == GiB - 600 * MiB);
  CHECK(memory.available(Signal::AllocatableMemoryAvailable) == 550 * MiB);
  CHECK(memory.available_at_least(Signal::AllocatableMemoryAvailable) == 500 * MiB);

  node.tree.write("cgroup/memory/lab/memory.usage_in_bytes", std::to_string(2 * GiB));
  CHECK(memory.available(Signal::MemoryAvailable) == 0);
  CHECK(memory.available_at_least(Signal::MemoryAvailable) == -GiB);
  node.tree.write("cgroup/memory/lab/memory.usage_in_bytes", "garbage");
  CHECK_FALSE(memory.available(Signal::MemoryAvailable));
  CHECK_FALSE(memory.available_at_least(Signal::MemoryAvailable));
}

TEST_CASE("an unlimited pods' cgroup has nothing to read between readings") {
  const Node node{v1({.limit = GiB}, {kubepods({.usage = 300 * MiB})}), "/lab"};
  auto memory = value_of(node.open());
  CHECK(value_of(memory.read(now)).pods);
  CHECK_FALSE(memory.available(Signal::AllocatableMemoryAvailable));
  CHECK_FALSE(memory.available_at_least(Signal::AllocatableMemoryAvailable));
}

TEST_CASE("in memAvailable mode only the estimate counts, and no usage stands for a threshold") {
  Node node{v1({})};
  node.settings.memory_available = config::MemoryAvailable::MemAvailable;
  node.tree.write("proc/meminfo", "MemTotal: 4194304 kB\nMemFree: 0 kB\nMemAvailable: 1048576 kB\n");
  auto memory = value_of(node.open());
  CHECK_FALSE(value_of(memory.read(now)).node_level.level_without_reclaimable(GiB));
  node.tree.write("proc/meminfo", "MemTotal: 4194304 kB\nMemFree: 0 kB\nMemAvailable: 524288 kB\n");
  CHECK(memory.available(Signal::MemoryAvailable) == GiB / 2);
  CHECK_FALSE(memory.available_at_least(Signal::MemoryAvailable));
}

TEST_CASE("cgroup v2: the root is read by the machine's counters between readings, too") {
  const Node node{v2()};
  auto memory = value_of(node.open());
  CHECK(value_of(memory.read(now)).capacity == 4 * GiB);
  CHECK(memory.available(Signal::MemoryAvailable) == 2 * GiB + 512 * MiB);
  CHECK(memory.available_at_least(Signal::MemoryAvailable) == 2 * GiB);
}

}  // namespace evictd::node::node_memory_test
