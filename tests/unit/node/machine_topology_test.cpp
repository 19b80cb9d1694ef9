#include "node/machine_topology.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>

#include "fixture/node_tree.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"
#include "node/meminfo.hpp"

namespace evictd::node::machine_topology_test {
namespace {

using admission::CpuSet;
using admission::LogicalCpu;
using admission::NumaNode;
using fixture::dir;
using fixture::Entry;
using fixture::error_of;
using fixture::file;
using fixture::Tree;
using fixture::value_of;

/// What the kernel says that the machine's memory nodes hold, bytes; without such nodes the machine's MemTotal.
std::int64_t memory_of_nodes() {
  std::int64_t kib = 0;
  for (int id = 0;; ++id) {
    std::ifstream lines{fmt::format("/sys/devices/system/node/node{}/meminfo", id)};
    if (!lines) break;
    for (std::string word; lines >> word;)
      if (std::int64_t number = 0; word == "MemTotal:" && lines >> number) kib += number;
  }
  if (kib > 0) return kib * 1024;
  return value_of(value_of(Meminfo::open(value_of(os::Directory::open("/proc")))).read()).total;
}

Entry cpu(int id, const std::string& package, const std::string& siblings, const std::string& cache) {
  return dir("cpu" + std::to_string(id),
             {dir("topology", {file("physical_package_id", package + "\n"), file("core_cpus_list", siblings + "\n")}),
              dir("cache", {dir("index0", {file("level", "1\n"), file("shared_cpu_list", siblings + "\n")}),
                            dir("index3", {file("level", "3\n"), file("shared_cpu_list", cache + "\n")})})});
}

Entry node(int id, const std::string& cpus, const std::string& distances, const std::string& huge_pages) {
  const auto name = std::to_string(id);
  return dir("node" + name,
             {file("cpulist", cpus + "\n"), file("distance", distances + "\n"),
              file("meminfo", "Node " + name + " MemTotal:       1024 kB\nNode " + name + " MemFree:  12 kB\n"),
              dir("hugepages", {dir("hugepages-2048kB", {file("nr_hugepages", huge_pages + "\n")}),
                                dir("hugepages-1048576kB", {file("nr_hugepages", "0\n")})})});
}

/// Two sockets of two cores; the second threads are CPUs 4 to 7, of which 7 is offline. The third node has memory only.
Tree machine() {
  return Tree{
      dir("sys",
          {dir("devices",
               {dir("system", {dir("cpu", {file("online", "0-6\n"), cpu(0, "0", "0,4", "0-1,4-5"),
                                           cpu(1, "0", "1,5", "0-1,4-5"), cpu(2, "1", "2,6", "2-3,6-7"),
                                           cpu(3, "1", "3,7", "2-3,6-7"), cpu(4, "0", "0,4", "0-1,4-5"),
                                           cpu(5, "0", "1,5", "0-1,4-5"), cpu(6, "1", "2,6", "2-3,6-7")}),
                               dir("node", {file("online", "0-1,4\n"), node(0, "0-1,4-5", "10 21 17", "8"),
                                            node(1, "2-3,6-7", "21 10 28", "0"), node(4, "", "17 28 10", "0")})})})})};
}

}  // namespace

TEST_CASE("cores, sockets, caches and NUMA nodes are read as the kernel tells them") {
  const auto tree = machine();
  const auto topology = value_of(read_machine_topology(tree.path("sys"), tree.path()));
  CHECK(topology.all_cpus() == CpuSet{0, 1, 2, 3, 4, 5, 6});
  CHECK(topology.cpus[0] == LogicalCpu{.id = 0, .core = 0, .socket = 0, .numa_node = 0, .uncore_cache = 0});
  CHECK(topology.cpus[5] == LogicalCpu{.id = 5, .core = 1, .socket = 0, .numa_node = 0, .uncore_cache = 0});
  CHECK(topology.cpus[6] == LogicalCpu{.id = 6, .core = 2, .socket = 1, .numa_node = 1, .uncore_cache = 2});
  REQUIRE(topology.numa_nodes.size() == 3);
  CHECK(topology.numa_nodes[0] ==
        NumaNode{.id = 0,
                 .memory = {{"memory", 1024 << 10}, {"hugepages-2Mi", 8 << 21}, {"hugepages-1Gi", 0}},
                 .distances = {{0, 10}, {1, 21}, {4, 17}}});
  CHECK(topology.numa_nodes[2].distances == std::map<int, int>{{0, 17}, {1, 28}, {4, 10}});
}

TEST_CASE("a kernel without NUMA has one node with all the memory") {
  const auto tree = machine();
  tree.remove("sys/devices/system/node");
  tree.add("", fixture::proc({.total = 4096 << 10, .free = 1, .available = 1}));
  tree.add("sys",
           dir("kernel", {dir("mm", {dir("hugepages", {dir("hugepages-2048kB", {file("nr_hugepages", "3\n")})})})}));
  const auto topology = value_of(read_machine_topology(tree.path("sys"), tree.path("proc")));
  CHECK(topology.numa_nodes ==
        std::vector{
            NumaNode{.id = 0, .memory = {{"memory", 4096 << 10}, {"hugepages-2Mi", 3 << 21}}, .distances = {{0, 10}}}});
  CHECK(topology.cpus[6].numa_node == 0);
  CHECK(topology.cpus[6].socket == 1);
}

TEST_CASE("huge pages are told for the machine as a whole, too; a kernel without them has none") {
  const Tree tree{
      dir("kernel", {dir("mm", {dir("hugepages", {dir("hugepages-2048kB", {file("nr_hugepages", "3\n")})})})})};
  CHECK(value_of(read_huge_pages(tree.path())) ==
        std::map<std::string, std::int64_t, std::less<>>{{"hugepages-2Mi", 3 << 21}});
  tree.remove("kernel/mm/hugepages");
  CHECK(value_of(read_huge_pages(tree.path())).empty());
}

TEST_CASE("firmware that is vague about CPUs makes each a core of socket 0") {
  const auto tree = machine();
  tree.remove("sys/devices/system/cpu/cpu1");
  tree.add("sys/devices/system/cpu", dir("cpu1"));
  tree.remove("sys/devices/system/cpu/cpu5/cache");
  tree.write("sys/devices/system/cpu/cpu5/topology/physical_package_id", "-1\n");
  tree.write("sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list", "0-7\n");
  const auto topology = value_of(read_machine_topology(tree.path("sys"), tree.path()));
  CHECK(topology.cpus[1] == LogicalCpu{.id = 1, .core = 1, .socket = 0, .numa_node = 0, .uncore_cache = 0});
  CHECK(topology.cpus[5].socket == 0);
  CHECK(topology.cpus[0].uncore_cache == 0);
}

TEST_CASE("what cannot be read is named") {
  const auto tree = machine();
  const auto error = [&] { return error_of(read_machine_topology(tree.path("sys"), tree.path())); };
  const auto path = [&](const char* relative) {
    return tree.path(std::string("sys/devices/system/") + relative).native();
  };
  tree.write("sys/devices/system/node/node1/distance", "21 10\n");
  CHECK(error() == path("node/node1/distance") + ": too few numbers");
  tree.write("sys/devices/system/node/node1/meminfo", "Node 1 MemFree: 1 kB\n");
  CHECK(error() == path("node/node1/meminfo") + ": no number behind \"MemTotal:\"");
  tree.write("sys/devices/system/cpu/online", "many\n");
  CHECK(error().starts_with(path("cpu/online") + ": \"many"));
  tree.remove("sys/devices/system/cpu/online");
  CHECK(error() == path("cpu/online") + ": No such file or directory");
}

TEST_CASE("the machine this runs on is read: its online CPUs, with memory on its nodes") {
  // A virtual machine's balloon changes it at any time: asked until it stood still meanwhile.
  auto of_kernel = memory_of_nodes();
  auto topology = value_of(read_machine_topology());
  for (int i = 0; i < 1000 && memory_of_nodes() != of_kernel; ++i) {
    of_kernel = memory_of_nodes();
    topology = value_of(read_machine_topology());
  }
  CHECK(topology.cpus.size() == static_cast<std::size_t>(::sysconf(_SC_NPROCESSORS_ONLN)));
  cpu_set_t allowed;
  REQUIRE(::sched_getaffinity(0, sizeof allowed, &allowed) == 0);
  const auto all = topology.all_cpus();
  for (int id = 0; id < CPU_SETSIZE; ++id)
    if (CPU_ISSET(id, &allowed)) CHECK(all.contains(id));
  std::int64_t memory = 0;
  for (const auto& node : topology.numa_nodes) {
    memory += node.memory.at("memory");
    CHECK(node.distances.at(node.id) == 10);
  }
  CHECK(memory == of_kernel);
}

}  // namespace evictd::node::machine_topology_test
