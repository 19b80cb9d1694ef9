#include "node/pod_memory_snapshot.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "fixture/node_tree.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"

namespace evictd::node::pod_memory_snapshot_test {
namespace {

using fixture::dir;
using fixture::Entry;
using fixture::file;
using fixture::Tree;
using fixture::value_of;

constexpr std::int64_t kib = 1024;
const std::vector<std::string> pod{"/pod"};

/// As the kernel writes it, with the lines that lie between.
Entry process(int pid, const std::string& name, int resident, int anonymous, int shared,
              const std::string& groups = "") {
  return dir(std::to_string(pid),
             {file("status", fmt::format("Name:\t{}\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t{}\nGroups:\t{}\n"
                                         "VmPeak:\t{:8} kB\nVmRSS:\t{:8} kB\nRssAnon:\t{:8} kB\nRssFile:\t       0 kB\n"
                                         "RssShmem:\t{:8} kB\nThreads:\t1\n",
                                         name, pid, groups, resident, resident, anonymous, shared)),
              file("comm", name + "\n"), file("statm", "1000 20 5 1 0 30 0\n")});
}

/// The entries of a node, with these processes.
std::vector<Entry> with_processes(std::vector<Entry> node, const std::vector<Entry>& processes) {
  auto& proc = std::ranges::find(node, "proc", &Entry::name)->entries;
  proc.insert(proc.end(), processes.begin(), processes.end());
  return node;
}

/// `pids`: of the pod, as its cgroup.procs lists them.
Tree v1(const std::string& pids, const std::vector<Entry>& processes) {
  return Tree{with_processes(
      fixture::v1_node(
          {}, {},
          {dir("pod", {file("memory.usage_in_bytes", "5000000\n"), file("memory.kmem.usage_in_bytes", "70000\n"),
                       file("memory.stat",
                            "cache 1\nrss 2\nshmem 3\ntotal_cache 900000\ntotal_rss 4000000\n"
                            "total_shmem 800000\ntotal_mapped_file 4096\ntotal_inactive_file 60000\n"),
                       file("cgroup.procs", "")})},
          {dir("pod", {file("cgroup.procs", pids)})}),
      processes)};
}

PodMemoryReader reader(const Tree& tree) {
  return {value_of(CgroupHierarchy::detect(tree.path("cgroup"))), value_of(os::Directory::open(tree.path("proc")))};
}

PodMemorySnapshot read(const Tree& tree, std::size_t left = 100) {
  const auto snapshot = reader(tree).read(pod, left);
  REQUIRE(snapshot);
  return *snapshot;
}

std::vector<std::string> commands(const PodMemorySnapshot& snapshot) {
  std::vector<std::string> names;
  for (const auto& each : snapshot.processes) names.push_back(each.command);
  return names;
}

std::int64_t row(const PodMemorySnapshot& snapshot, std::string_view name) {
  const auto found = std::ranges::find(snapshot.rows, name, &MemoryRow::name);
  return found == snapshot.rows.end() ? -1 : found->bytes;
}

}  // namespace

TEST_CASE("a pod's processes are there by what they hold, the largest first, with the rows of memory.stat: v1") {
  const auto tree = v1("10\n11\n12\n", {process(10, "sh", 100, 90, 0), process(11, "postgres", 3000, 2500, 400),
                                        process(12, "pause", 4, 4, 0)});
  const auto snapshot = read(tree);
  CHECK(snapshot.usage == 5'000'000);
  CHECK(snapshot.processes.front() == HeldByProcess{"postgres", 3000 * kib, 2500 * kib, 400 * kib});
  CHECK(commands(snapshot) == std::vector<std::string>{"postgres", "sh", "pause"});
  CHECK(snapshot.processes_read == 3);
  CHECK(snapshot.all_read);
  CHECK(row(snapshot, "anon") == 4'000'000);  // the whole tree's, not the cgroup's own
  CHECK(row(snapshot, "file") == 900'000);
  CHECK(row(snapshot, "shmem") == 800'000);
  CHECK(row(snapshot, "file_mapped") == 4096);
  CHECK(row(snapshot, "inactive_file") == 60'000);
  CHECK(row(snapshot, "kernel") == 70'000);
  CHECK(row(snapshot, "slab") == -1);
  CHECK(snapshot.staying == 800'000 - 400 * kib);
  CHECK_FALSE(snapshot.node_stall);
  CHECK_FALSE(snapshot.pod_stall);
}

TEST_CASE("on v2 the rows have names of their own, and the kernel tells how long tasks waited") {
  Tree tree{fixture::v2_node(
      {}, 0,
      {dir("pod", {file("memory.current", "7000\n"), file("cgroup.procs", "10\n"),
                   file("memory.stat", "anon 3000\nfile 2000\nkernel 900\nshmem 100\nslab 50\ninactive_file 1500\n"),
                   file("memory.pressure",
                        "some avg10=12.50 avg60=3.25 avg300=1.00 total=7\n"
                        "full avg10=1.50 avg60=0.25 avg300=0.00 total=3\n")})})};
  tree.add("proc", process(10, "web", 30, 30, 0));
  tree.add("proc", dir("pressure", {file("memory", "some avg10=0.50 avg60=0.00 avg300=0.00 total=7\n")}));
  const auto snapshot = read(tree);
  CHECK(row(snapshot, "anon") == 3000);
  CHECK(row(snapshot, "kernel") == 900);
  CHECK(row(snapshot, "slab") == 50);
  CHECK(snapshot.staying == 100);
  CHECK(snapshot.pod_stall == MemoryStall{.some_10 = 12.5, .some_60 = 3.25, .full_10 = 1.5, .full_60 = 0.25});
  CHECK(snapshot.node_stall == MemoryStall{.some_10 = 0.5});
}

TEST_CASE("processes that vanish, have ended or are another pod's by now are left out") {
  // 11 is gone; 12 has ended, and holds nothing; 13 is no process of the pod's.
  const auto tree = v1("10\n11\n12\n", {process(10, "web", 30, 30, 0), dir("12", {file("status", "Name:\tzombie\n")}),
                                        process(13, "other", 500, 500, 0)});
  CHECK(commands(read(tree)) == std::vector<std::string>{"web"});
}

TEST_CASE("a name is one printable line, whatever a process calls itself") {
  const auto tree = v1("10\n11\n", {process(10, "a\\nVmRSS:\x1b[2J\xff", 30, 30, 0), process(11, "", 20, 20, 0)});
  const auto names = commands(read(tree));
  REQUIRE(names.size() == 2);
  CHECK(names[0] == "a\\nVmRSS:\\x1b[2J\\xff");  // the kernel writes a line's end as \n itself
  CHECK(names[1].empty());
}

TEST_CASE("a process with as many groups as the kernel allows does not hide what it holds") {
  const auto tree =
      v1("10\n11\n", {process(10, "web", 12, 12, 0), process(11, "hi\nding", 30, 30, 0, std::string(20'000, '7'))});
  const auto snapshot = read(tree);
  REQUIRE(snapshot.processes.size() == 2);
  CHECK(snapshot.processes[0].command == "hi\\nding");
  CHECK(snapshot.processes[0].resident > snapshot.processes[1].resident);
}

TEST_CASE("more than ten gigabytes are read, where the kernel leaves no blank before the number") {
  const auto tree = v1("10\n", {process(10, "db", 123'456'789, 123'000'000, 0)});
  CHECK(read(tree).processes[0].resident == 123'456'789 * kib);
}

TEST_CASE("of many processes ten are shown, and no more are looked at than was asked for") {
  std::string pids;
  std::vector<Entry> processes;
  for (int pid = 100; pid < 150; ++pid) {
    pids += std::to_string(pid) + "\n";
    processes.push_back(process(pid, "p" + std::to_string(pid), pid, pid, 0));
  }
  const auto tree = v1(pids, processes);
  const auto all = read(tree);
  CHECK(all.processes.size() == PodMemorySnapshot::most_shown);
  CHECK(all.processes.front().command == "p149");
  CHECK(all.all_read);
  std::size_t left = 20;
  const auto some = reader(tree).read(pod, left);
  REQUIRE(some);
  CHECK(left == 0);
  CHECK(some->processes_read == 20);
  CHECK_FALSE(some->all_read);
  CHECK_FALSE(some->staying);  // others may map it
}

TEST_CASE("without a pids controller processes are listed where the memory is") {
  const auto tree = v1("", {process(10, "web", 30, 30, 0)});
  tree.remove("cgroup/pids");
  tree.write("cgroup/memory/pod/cgroup.procs", "10\n");
  CHECK(commands(read(tree)) == std::vector<std::string>{"web"});
}

TEST_CASE("of a pod without a cgroup of its own its containers' are added up, and of none there is no snapshot") {
  const auto tree = v1("", {});
  std::size_t left = 100;
  const std::vector<std::string> twice{"/pod", "/gone", "/pod"};
  const auto snapshot = reader(tree).read(twice, left);
  REQUIRE(snapshot);
  CHECK(snapshot->usage == 10'000'000);
  CHECK(row(*snapshot, "anon") == 8'000'000);
  const std::vector<std::string> gone{"/gone"};
  CHECK_FALSE(reader(tree).read(gone, left));
  CHECK_FALSE(reader(tree).read({}, left));
}

}  // namespace evictd::node::pod_memory_snapshot_test
