#include "evict/sandbox_cgroup.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fixture/node_tree.hpp"
#include "fixture/real_cgroup.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"
#include "support/skip.hpp"

namespace evictd::evict::sandbox_cgroup_test {
namespace {

using fixture::dir;
using fixture::Entry;
using fixture::file;
using fixture::own_cgroup;
using fixture::RealCgroup;
using fixture::Sleeper;
using fixture::Tree;
using fixture::value_of;

constexpr std::int64_t mebi = 1 << 20;

node::CgroupHierarchy detect(const Tree& tree) { return value_of(node::CgroupHierarchy::detect(tree.path("cgroup"))); }

Tree v1_pod(std::vector<Entry> cgroups) { return Tree{fixture::v1_node({}, {}, {dir("pod", std::move(cgroups))})}; }
Tree v2_pod(std::vector<Entry> cgroups) { return Tree{fixture::v2_node({}, 0, {dir("pod", std::move(cgroups))})}; }

Entry v1_cgroup(std::string name, std::int64_t usage) {
  return dir(std::move(name), fixture::v1_memory({.usage = usage}, {file("cgroup.procs", "1\n")}));
}
Entry v2_cgroup(std::string name, std::int64_t usage) {
  return dir(std::move(name), fixture::v2_memory({.usage = usage}, {file("cgroup.procs", "1\n")}));
}

pods::RuntimePod pod(std::string sandbox, std::string container = "c0ffee") {
  return {
      .sandbox_id = std::move(sandbox), .containers = {{.id = std::move(container), .name = "main"}}, .cgroup = "/pod"};
}

}  // namespace

TEST_CASE("the sandbox's cgroup is the one that carries its id: cgroupfs, systemd, both versions") {
  const SandboxCgroup plain{"5a9d", mebi};
  CHECK(sandbox_cgroup(detect(v1_pod({v1_cgroup("c0ffee", 500 * mebi), v1_cgroup("5a9d", mebi)})), pod("5a9d")) ==
        plain);
  CHECK(sandbox_cgroup(detect(v2_pod({v2_cgroup("5a9d", mebi), v2_cgroup("c0ffee", 500 * mebi)})), pod("5a9d")) ==
        plain);
  const Tree systemd =
      v2_pod({v2_cgroup("cri-containerd-c0ffee.scope", 500 * mebi), v2_cgroup("cri-containerd-5a9d.scope", mebi)});
  CHECK(sandbox_cgroup(detect(systemd), pod("5a9d")) == SandboxCgroup{"cri-containerd-5a9d.scope", mebi});
}

TEST_CASE("a name that is made as the containers' are is enough; one that leads elsewhere is not followed") {
  const Tree tree = v2_pod({v2_cgroup("crio-c0ffee.scope", 500 * mebi), v2_cgroup("crio-5a9d.scope", mebi),
                            v2_cgroup("a-5a9d.scope", 2 * mebi)});
  auto listed = pod("5a9d");
  listed.containers.front().cgroup = "/pod/crio-c0ffee.scope";
  CHECK(sandbox_cgroup(detect(tree), listed) == SandboxCgroup{"crio-5a9d.scope", mebi});
  const Tree other{fixture::v2_node({}, 0, {dir("pod", {v2_cgroup("c0ffee", mebi)}), v2_cgroup("other", mebi)})};
  CHECK_FALSE(sandbox_cgroup(detect(other), pod("../other")));
}

TEST_CASE("a sandbox whose cgroup holds the pod's memory is not spared: the runtime runs the containers in it") {
  CHECK_FALSE(sandbox_cgroup(detect(v2_pod({v2_cgroup("5a9d", 300 * mebi)})), pod("5a9d")));
}

TEST_CASE("a pod without a cgroup to itself, or whose cgroup is gone or empty, has no sandbox's") {
  const Tree tree = v2_pod({});
  CHECK_FALSE(sandbox_cgroup(detect(tree), pod("5a9d")));
  CHECK_FALSE(sandbox_cgroup(detect(tree), {.sandbox_id = "5a9d", .cgroup = "/gone"}));
  CHECK_FALSE(sandbox_cgroup(detect(tree), {.sandbox_id = "5a9d"}));
}

TEST_CASE("in a pod that made very many cgroups none is looked for") {
  std::vector<Entry> made{v1_cgroup("a-5a9d", mebi)};  // by no name that is expected
  for (int i = 0; i < 1100; ++i) made.push_back(dir("own-" + std::to_string(i)));
  CHECK_FALSE(sandbox_cgroup(detect(v1_pod(std::move(made))), pod("5a9d")));
}

TEST_CASE("where the sandbox is gone its containers are not taken for it") {
  CHECK_FALSE(sandbox_cgroup(detect(v1_pod({v1_cgroup("c0ffee", mebi)})), pod("5a9d")));
  CHECK_FALSE(sandbox_cgroup(detect(v2_pod({v2_cgroup("cri-containerd-c0ffee.scope", mebi)})), pod("5a9d")));
}

TEST_SUITE_BEGIN("real cgroups");

TEST_CASE("the sandbox of a pod that no list names yet is in the cgroup that was made first") {
  SKIP_IF(fixture::no_real_cgroups());
  const auto hierarchy = fixture::real_hierarchy();
  const RealCgroup pod{own_cgroup()};
  // In neither order of their names.
  const RealCgroup sandbox{own_cgroup("/m")};
  const RealCgroup one{own_cgroup("/a")};
  const RealCgroup other{own_cgroup("/z")};
  const pods::RuntimePod unlisted{.cgroup = pod.path()};
  const auto name = [&] {
    const auto found = sandbox_cgroup(hierarchy, unlisted);
    return found ? found->name : std::string{};
  };
  CHECK(name().empty());  // nothing in it that would have to be spared
  const Sleeper pause;
  sandbox.put(pause.pid());
  CHECK(name() == "m");
  const Sleeper second;
  sandbox.put(second.pid());
  CHECK(name().empty());  // a sandbox has one process
}

TEST_SUITE_END();

}  // namespace evictd::evict::sandbox_cgroup_test
