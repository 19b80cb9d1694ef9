#include "node/cgroup_processes.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

#include "fixture/node_tree.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"
#include "os/file_descriptor.hpp"
#include "testbed/process.hpp"

namespace evictd::node::cgroup_processes_test {
namespace {

using fixture::dir;
using fixture::error_of;
using fixture::file;
using fixture::Tree;
using fixture::value_of;

using Pids = std::vector<pid_t>;

fixture::Entry procs(std::string list) { return file("cgroup.procs", std::move(list)); }

Tree v1_pod(std::vector<fixture::Entry> pod, std::vector<fixture::Entry> pids = {}) {
  return Tree{fixture::v1_node({}, {}, {dir("pod", std::move(pod))}, std::move(pids))};
}

CgroupHierarchy detect(const Tree& tree) { return value_of(CgroupHierarchy::detect(tree.path("cgroup"))); }

}  // namespace

TEST_CASE("the processes of a pod are those of its containers too, each once") {
  const Tree tree =
      v1_pod({procs("30\n"), dir("a", {procs("10\n20\n"), dir("nested", {procs("5\n")})}), dir("b", {procs("10\n")})});
  CHECK(value_of(processes(detect(tree), "/pod")) == Pids{5, 10, 20, 30});
}

TEST_CASE("of more processes or cgroups than there is time for nothing is listed") {
  const Tree tree =
      v1_pod({procs("30\n"), dir("a", {procs("10\n20\n"), dir("nested", {procs("5\n")})}), dir("b", {procs("7\n")})});
  const auto within = [&](WalkLimit limit) { return value_of(processes_within(limit, detect(tree), "/pod")); };
  CHECK(within({.processes = 5, .cgroups = 4}) == Pids{5, 7, 10, 20, 30});
  CHECK_FALSE(within({.processes = 4}));
  CHECK_FALSE(within({.cgroups = 3}));
  WalkLimit budget{.cgroups = 5};
  CHECK(value_of(processes_within(budget, detect(tree), "/pod", "b")) == Pids{5, 10, 20, 30});
  CHECK(budget.cgroups == 2);
  CHECK_FALSE(value_of(processes_within(budget, detect(tree), "/pod", "b")));
  CHECK(budget.cgroups == 0);
}

TEST_CASE("cgroups that are nested deeper than a path reaches are walked to the last") {
  const Tree tree{fixture::v1_node({}, {}, {dir("pod", {file("cgroup.procs", "7\n")})})};
  const auto pod = tree.path("cgroup/memory/pod");
  const std::string name(250, 'x');
  os::FileDescriptor deepest{::open(pod.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  for (int depth = 0; depth < 20; ++depth) {
    REQUIRE(::mkdirat(deepest.get(), name.c_str(), 0755) == 0);
    deepest = os::FileDescriptor{::openat(deepest.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    const os::FileDescriptor list{::openat(deepest.get(), "cgroup.procs", O_WRONLY | O_CREAT | O_CLOEXEC, 0644)};
    const auto pid = std::to_string(100 + depth) + '\n';
    REQUIRE(::write(list.get(), pid.data(), pid.size()) == static_cast<ssize_t>(pid.size()));
  }
  const auto pids = processes(detect(tree), "/pod");
  REQUIRE(::mkdirat(deepest.get(), "cgroup.procs.d", 0755) == 0);
  REQUIRE(::mkdirat(deepest.get(), "cgroup.procs.d/cgroup.procs", 0755) == 0);  // cannot be read as a list
  const auto error = error_of(processes(detect(tree), "/pod"));
  testbed::run({"rm", "-r", pod.native()});  // by names, as well
  CHECK(value_of(pids).size() == 21);
  CHECK(error.starts_with(pod.native() + "/.../cgroup.procs.d/cgroup.procs"));  // no path is kept that grows
}

TEST_CASE("a list that was opened before is read once") {
  const Tree tree = v1_pod({procs("20\n0\n10\n")});
  const auto hierarchy = detect(tree);
  const auto file = value_of(hierarchy.memory_file("/pod", "cgroup.procs"));
  CHECK(value_of(first_processes(file)) == Pids{10, 20});
  CHECK(value_of(first_processes(file)).empty());  // it is at its end
}

TEST_CASE("tasks are counted where the pids controller is, and no process is listed in its place") {
  const Tree tree = v1_pod({procs("10\n")}, {dir("pod", {file("pids.current", "7\n")})});
  CHECK(value_of(task_count(detect(tree), "/pod")) == 7);
  CHECK_FALSE(task_count(detect(v1_pod({procs("10\n")})), "/pod"));
}

TEST_CASE("a process that this pid namespace cannot see is never listed, for its 0 would mean ourselves") {
  const Tree tree = v1_pod({procs("0\n7\n0\n")});
  CHECK(value_of(processes(detect(tree), "/pod")) == Pids{7});
}

TEST_CASE("a long list is read to its end") {
  std::string list;
  Pids expected;
  for (pid_t pid = 1'000'000; pid < 1'005'000; ++pid) {
    list += std::to_string(pid) + "\n";
    expected.push_back(pid);
  }
  const Tree tree = v1_pod({procs(list)});
  CHECK(value_of(processes(detect(tree), "/pod")) == expected);
}

TEST_CASE("the first processes of a cgroup are its own alone, and some of many") {
  const Tree tree = v1_pod({procs("30\n0\n20\n"), dir("a", {procs("10\n")})});
  CHECK(value_of(first_processes(detect(tree), "/pod")) == Pids{20, 30});
  CHECK(value_of(first_processes(detect(tree), "/pod/a")) == Pids{10});
  CHECK(value_of(first_processes(detect(tree), "/pod/gone")).empty());
  std::string list;
  for (pid_t pid = 1'000'000; pid < 1'005'000; ++pid) list += std::to_string(pid) + "\n";
  tree.write("cgroup/memory/pod/cgroup.procs", list);
  const auto some = value_of(first_processes(detect(tree), "/pod"));
  CHECK(some.front() == 1'000'000);
  CHECK(some.size() > 100);
  CHECK(some.size() < 5'000);
}

TEST_CASE("something else than process ids is an error") {
  const Tree tree = v1_pod({procs("1\nx\n")});
  CHECK(error_of(processes(detect(tree), "/pod")) ==
        tree.path("cgroup/memory/pod/cgroup.procs").native() + ": lists something else than process ids");
  tree.write("cgroup/memory/pod/cgroup.procs", std::string(10'000, '1'));
  CHECK(error_of(processes(detect(tree), "/pod")) ==
        tree.path("cgroup/memory/pod/cgroup.procs").native() + ": holds no process ids");
}

TEST_CASE("a cgroup below that vanished on the way is passed over, the pod's own is gone") {
  const Tree tree = v1_pod({procs("1\n"), dir("half-removed")});
  CHECK(value_of(processes(detect(tree), "/pod")) == Pids{1});
  const auto missing = processes(detect(tree), "/nothing");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().is_gone());
}

TEST_CASE("the count comes from the pids controller, and without one from the list") {
  const Tree counted = v1_pod({procs("1\n2\n")}, {dir("pod", {file("pids.current", "17\n")})});
  CHECK(value_of(process_count(detect(counted), "/pod")) == 17);
  const Tree listed = v1_pod({procs("1\n2\n")});
  CHECK(value_of(process_count(detect(listed), "/pod")) == 2);
  const Tree v2{fixture::v2_node({}, 0, {dir("pod", {file("pids.current", "5\n")})})};
  CHECK(value_of(process_count(detect(v2), "/pod")) == 5);
}

TEST_CASE("cgroup v1: a pod is empty when no cgroup of it has a process") {
  const Tree tree = v1_pod({procs(""), dir("a", {procs("")}), dir("b", {procs("9\n")})});
  CHECK_FALSE(value_of(is_empty_or_gone(detect(tree), "/pod")));
  tree.write("cgroup/memory/pod/b/cgroup.procs", "");
  CHECK(value_of(is_empty_or_gone(detect(tree), "/pod")));
  tree.write("cgroup/memory/pod/b/cgroup.procs", "0\n");
  CHECK_FALSE(value_of(is_empty_or_gone(detect(tree), "/pod")));
  tree.remove("cgroup/memory/pod");
  CHECK(value_of(is_empty_or_gone(detect(tree), "/pod")));
}

TEST_CASE("of a pod that made many cgroups some are looked at, and then the tasks are counted") {
  std::vector<fixture::Entry> own{procs("")};
  for (int i = 0; i < 70; ++i) own.push_back(dir(fmt::format("own-{:02}", i), {procs("")}));
  const auto tasks = [](std::string_view count) { return file("pids.current", fmt::format("{}\n", count)); };
  const Tree tree = v1_pod({procs(""), dir("container", own), dir("sandbox", {procs("9\n")})},
                           {dir("pod", {tasks("2"), dir("sandbox", {tasks("1")})})});
  CHECK_FALSE(value_of(is_empty_or_gone(detect(tree), "/pod", "sandbox")));
  tree.write("cgroup/pids/pod/pids.current", "1\n");
  CHECK(value_of(is_empty_or_gone(detect(tree), "/pod", "sandbox")));
  CHECK_FALSE(value_of(is_empty_or_gone(detect(tree), "/pod")));

  tree.write("cgroup/pids/pod/pids.current", "2\n");
  CHECK_FALSE(value_of(is_empty_or_gone(detect(tree), "/pod", "sandbox")));
  tree.remove("cgroup/pids/pod");  // it goes by itself on v1
  CHECK(value_of(is_empty_or_gone(detect(tree), "/pod", "sandbox")));

  const Tree v2{
      fixture::v2_node({}, 0, {dir("pod", {procs(""), dir("container", own), dir("sandbox", {procs("9\n")})})})};
  CHECK_FALSE(value_of(is_empty_or_gone(detect(v2), "/pod", "sandbox")));  // nobody counts
}

TEST_CASE("cgroup v2: a pod is empty when the kernel says that it is not populated") {
  const Tree tree{fixture::v2_node({}, 0, {dir("pod", fixture::v2_memory({}))})};
  CHECK_FALSE(value_of(is_empty_or_gone(detect(tree), "/pod")));
  tree.write("cgroup/pod/cgroup.events", "populated 0\nfrozen 0\n");
  CHECK(value_of(is_empty_or_gone(detect(tree), "/pod")));
  tree.write("cgroup/pod/cgroup.events", "frozen 0\n");
  CHECK(error_of(is_empty_or_gone(detect(tree), "/pod")) ==
        tree.path("cgroup/pod/cgroup.events").native() + ": no number behind \"populated\"");
  tree.remove("cgroup/pod");
  CHECK(value_of(is_empty_or_gone(detect(tree), "/pod")));
}

}  // namespace evictd::node::cgroup_processes_test
