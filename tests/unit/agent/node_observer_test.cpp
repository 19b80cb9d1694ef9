#include "agent/node_observer.hpp"

#include <doctest/doctest.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <string>

#include "fixture/captured_log.hpp"
#include "fixture/node_tree.hpp"
#include "fixture/pods.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"
#include "node/node_pids.hpp"

namespace evictd::agent::node_observer_test {
namespace {

using enum core::Signal;
using fixture::CapturedLog;
using fixture::dir;
using fixture::file;
using fixture::Tree;
using fixture::value_of;
using fixture::operator""_GiB;
using fixture::operator""_MiB;

/// A node of cgroup v1 that is the cgroup /lab of 1 GiB, with half of it used. Its disks say nothing.
struct Node {
  Node() : pids{open_pids()} {}

  Tree tree{fixture::v1_node(
      {.total = 8_GiB, .free = 4_GiB, .available = 4_GiB}, {},
      {dir("lab", fixture::v1_memory({.usage = 512_MiB, .limit = 1_GiB}, {dir("kubepods", fixture::v1_memory({}))}))})};
  config::NodeSettings settings = fixture::settings_for(tree, "/lab");
  node::CgroupHierarchy hierarchy = value_of(node::CgroupHierarchy::detect(settings.cgroup_mount));
  boost::asio::io_context reactor{1};
  node::NodeMemory memory = value_of(node::NodeMemory::open(hierarchy, settings));
  node::NodeDisk disk{reactor.get_executor(), settings};
  node::NodePids pids;
  std::array<node::SignalReader*, 2> readers{&disk, &pids};
  NodeObserver observer{memory, disk, readers};

 private:
  [[nodiscard]] node::NodePids open_pids() const {
    tree.add("proc", file("loadavg", "0.20 0.18 0.12 3/300 11206\n"));
    tree.add("proc", dir("sys", {dir("kernel", {file("pid_max", "1000\n"), file("threads-max", "2000\n")})}));
    return value_of(node::NodePids::open(hierarchy, settings));
  }
};

}  // namespace

TEST_CASE("one reading has memory and process ids; a disk that has not answered yet has no observation") {
  Node node;
  const auto reading = value_of(node.observer.read(core::Instant{}));
  REQUIRE(reading.observations[MemoryAvailable]);
  CHECK(reading.observations[MemoryAvailable]->available == 512_MiB);
  CHECK(reading.observations[PidAvailable]);
  CHECK_FALSE(reading.observations[NodefsAvailable]);
}

TEST_CASE("every reading is fresh, and so is a second look at the memory") {
  Node node;
  auto observations = value_of(node.observer.read(core::Instant{})).observations;
  node.tree.write("cgroup/memory/lab/memory.usage_in_bytes", std::to_string(768_MiB) + "\n");
  CHECK(node.observer.with_memory_now(observations, core::Instant{})[MemoryAvailable]->available == 256_MiB);
  CHECK(value_of(node.observer.read(core::Instant{})).observations[MemoryAvailable]->available == 256_MiB);
}

TEST_CASE("a reading for memory alone has the other signals as they were read last, with the time of that") {
  Node node;
  const core::Instant before{std::chrono::seconds(1)};
  const core::Instant now{std::chrono::seconds(2)};
  const auto all = value_of(node.observer.read(before)).observations;
  node.tree.write("proc/loadavg", "0.20 0.18 0.12 3/999 11206\n");
  node.tree.write("cgroup/memory/lab/memory.usage_in_bytes", std::to_string(768_MiB) + "\n");
  const auto memory = value_of(node.observer.read_memory(now)).observations;
  CHECK(memory[MemoryAvailable]->available == 256_MiB);
  CHECK(memory[MemoryAvailable]->time == now);
  CHECK(memory[PidAvailable] == all[PidAvailable]);
  CHECK(memory[PidAvailable]->time == before);
  CHECK(value_of(node.observer.read(now)).observations[PidAvailable]->available == 1);
}

TEST_CASE("what could not be read is complained of once, whatever is read in between") {
  Node node;
  node.tree.write("proc/loadavg", "nonsense\n");
  const CapturedLog log;
  CHECK_FALSE(value_of(node.observer.read(core::Instant{})).observations[PidAvailable]);
  CHECK_FALSE(value_of(node.observer.read_memory(core::Instant{})).observations[PidAvailable]);
  CHECK_FALSE(value_of(node.observer.read(core::Instant{})).observations[PidAvailable]);
  CHECK(log.lines().size() == 1);
}

TEST_CASE("a second look adds no signal that was not observed") {
  Node node;
  CHECK_FALSE(node.observer.with_memory_now({}, core::Instant{})[MemoryAvailable]);
}

}  // namespace evictd::agent::node_observer_test
