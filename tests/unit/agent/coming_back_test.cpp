#include "agent/coming_back.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>

#include "fixture/node_tree.hpp"
#include "fixture/pods.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"

namespace evictd::agent::coming_back_test {
namespace {

using fixture::dir;
using fixture::file;
using fixture::Tree;
using fixture::value_of;
using fixture::operator""_MiB;

/// What a pod's cgroup holds, bytes.
struct Held {
  std::int64_t anonymous = 0;
  std::int64_t shared = 0;
  std::int64_t files = 0;
  std::int64_t kernel = 0;
};

std::string v1_stat(const Held& held) {
  return fmt::format("cache 1\nrss 2\nshmem 3\ntotal_cache {}\ntotal_rss {}\ntotal_shmem {}\ntotal_inactive_file 0\n",
                     held.files + held.shared, held.anonymous, held.shared);
}

std::string number(std::int64_t value) { return std::to_string(value) + "\n"; }

/// A node of cgroup v1 with the pod "p", whose container is "main" and whose sandbox is "pause".
struct Node {
  explicit Node(const Held& held)
      : tree{fixture::v1_node(
            {}, {},
            {dir("kubepods", {dir("podp", {file("memory.usage_in_bytes", ""), file("memory.stat", ""),
                                           file("cgroup.procs", ""), dir("main", {file("cgroup.procs", "7\n")}),
                                           dir("pause", {file("cgroup.procs", "5\n")})})})})} {
    holds(held);
    cgroups.sync(std::array{node::PodCgroup{"p", "/kubepods/podp"}});
  }

  void holds(const Held& held) const {
    tree.write("cgroup/memory/kubepods/podp/memory.usage_in_bytes",
               number(held.anonymous + held.shared + held.files + held.kernel));
    tree.write("cgroup/memory/kubepods/podp/memory.stat", v1_stat(held));
  }
  void end(const char* name) const { tree.write(fmt::format("cgroup/memory/kubepods/podp/{}/cgroup.procs", name), ""); }
  [[nodiscard]] std::optional<std::int64_t> coming_back() { return agent::coming_back(cgroups, pod); }

  static pods::RuntimePod runtime_pod() {
    pods::RuntimePod pod;
    pod.pod = std::make_shared<const core::Pod>(fixture::pod("p"));
    pod.cgroup = "/kubepods/podp";
    pod.containers = {
        {.id = "main", .name = "main", .state = pods::ContainerState::Running, .cgroup = "/kubepods/podp/main"}};
    return pod;
  }

  Tree tree;
  node::CgroupHierarchy hierarchy = value_of(node::CgroupHierarchy::detect(tree.path("cgroup")));
  node::PodCgroups cgroups{hierarchy};
  pods::RuntimePod pod = runtime_pod();
};

}  // namespace

TEST_CASE("what processes hold comes back, file cache does not") {
  Node node{{.anonymous = 100_MiB, .shared = 20_MiB, .files = 500_MiB, .kernel = 3_MiB}};
  CHECK(node.coming_back() == 123_MiB);
}

TEST_CASE("once no process is left but the sandbox's nothing comes back, whatever is charged to the cgroup") {
  Node node{{.anonymous = 100_MiB, .shared = 20_MiB, .files = 500_MiB}};
  node.holds({.anonymous = 200'000, .shared = 20_MiB, .files = 500_MiB});
  CHECK(node.coming_back() == 200'000 + 20_MiB);  // its process may share memory with others that live
  node.end("main");
  CHECK(node.coming_back() == 0);
}

TEST_CASE("what lies in a tmpfs is told apart, and outlives the processes") {
  Node node{{.anonymous = 100_MiB, .shared = 20_MiB, .files = 500_MiB}};
  CHECK(held_by_tmpfs(node.cgroups, "p") == 20_MiB);
  node.end("main");
  CHECK(held_by_tmpfs(node.cgroups, "p") == 20_MiB);
  node.tree.remove("cgroup/memory/kubepods/podp");
  node.cgroups.sync({});
  CHECK(held_by_tmpfs(node.cgroups, "p") == 0);
}

TEST_CASE("of a pod whose containers are unknown the whole cgroup tells") {
  Node node{{.anonymous = 200'000, .files = 500_MiB}};
  node.pod.containers.clear();
  node.end("main");
  CHECK(node.coming_back() == 200'000);
  node.end("pause");
  CHECK(node.coming_back() == 0);
}

TEST_CASE("memory that is still charged as anonymous is on its way, also where no process is listed any more") {
  Node node{{.anonymous = 100_MiB}};
  node.end("main");
  node.end("pause");
  CHECK(node.coming_back() == 100_MiB);
}

TEST_CASE("a pod without a cgroup has nothing to wait for, and what cannot be read is not nothing") {
  Node node{{.anonymous = 100_MiB}};
  node.tree.write("cgroup/memory/kubepods/podp/memory.stat", "nonsense\n");
  CHECK_FALSE(node.coming_back());
  node.tree.remove("cgroup/memory/kubepods/podp");
  node.cgroups.sync(std::array{node::PodCgroup{"p", "/kubepods/gone"}});
  CHECK(node.coming_back() == 0);
  node.cgroups.sync(std::array{node::PodCgroup{"p", ""}});
  CHECK(node.coming_back() == 0);
}

TEST_CASE("cgroup v2: slabs that can be reclaimed stay as well") {
  const Tree tree{fixture::v2_node(
      {}, 0,
      {dir("kubepods", {dir("podp", {file("memory.current", number(700_MiB)),
                                     file("memory.stat", fmt::format("anon {}\nfile {}\nkernel {}\nshmem {}\n"
                                                                     "slab_reclaimable {}\nslab_unreclaimable 0\n",
                                                                     100_MiB, 520_MiB, 80_MiB, 20_MiB, 60_MiB)),
                                     file("cgroup.procs", ""), file("cgroup.events", "populated 1\n")})})})};
  const auto hierarchy = value_of(node::CgroupHierarchy::detect(tree.path("cgroup")));
  node::PodCgroups cgroups{hierarchy};
  cgroups.sync(std::array{node::PodCgroup{"p", "/kubepods/podp"}});
  CHECK(coming_back(cgroups, Node::runtime_pod()) == 140_MiB);
}

TEST_CASE("the fence is lifted while a killed pod's memory is on its way, and no longer") {
  evict::EvictionRecord record{{.pod = Node::runtime_pod().pod, .cause = core::Signal::MemoryAvailable}, {}};
  const std::array holding{core::Releasing{"p", 100_MiB}};
  const std::array rest{core::Releasing{"p", 200'000}};
  CHECK_FALSE(lifts_fence(record, holding));  // its processes live, and may be held
  record.given_time = evict::GivenTime::now;
  CHECK(lifts_fence(record, holding));  // it is held by a brake of its own
  record.given_time = evict::GivenTime::none;
  record.killed = true;
  CHECK(lifts_fence(record, {}));
  CHECK(lifts_fence(record, holding));
  CHECK_FALSE(lifts_fence(record, rest));  // though its cleanup takes until tomorrow
  record.gone = true;
  CHECK_FALSE(lifts_fence(record, holding));  // no process is left to hold it
  record.gone = false;
  record.released = true;
  CHECK_FALSE(lifts_fence(record, holding));
}

}  // namespace evictd::agent::coming_back_test
