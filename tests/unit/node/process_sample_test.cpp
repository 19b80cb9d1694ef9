#include "node/process_sample.hpp"

#include <doctest/doctest.h>

#include "fixture/node_tree.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"

namespace evictd::node::process_sample_test {
namespace {

using fixture::dir;
using fixture::file;
using fixture::Tree;
using fixture::value_of;

using Pids = std::vector<pid_t>;

fixture::Entry procs(std::string list) { return file("cgroup.procs", std::move(list)); }

Tree v1_pod(std::vector<fixture::Entry> pod) { return Tree{fixture::v1_node({}, {}, {dir("pod", std::move(pod))})}; }

CgroupHierarchy detect(const Tree& tree) { return value_of(CgroupHierarchy::detect(tree.path("cgroup"))); }

}  // namespace

TEST_CASE("all processes of a small pod are in the sample, what cannot be seen from here is not") {
  const Tree tree = v1_pod({procs(""), dir("a", {procs("10\n0\n20\n"), dir("nested", {procs("5\n")})}), dir("b", {})});
  const auto sample = value_of(sample_processes(detect(tree), "/pod"));
  CHECK(sample.pids == Pids{10, 20, 5});
  CHECK(sample.complete);
}

TEST_CASE("of a long list the first are taken, of many cgroups those that are least deep") {
  std::string list;
  for (int pid = 1; pid < 10'000; ++pid) list += std::to_string(pid) + "\n";
  const Tree tree =
      v1_pod({procs(""), dir("a", {procs(list), dir("deep", {procs("70000\n")})}), dir("b", {procs("8\n")})});
  const auto first = value_of(sample_processes(detect(tree), "/pod", 2));
  CHECK(first.pids == Pids{1, 2, 8, 70'000});
  CHECK_FALSE(first.complete);
  const auto few = value_of(sample_processes(detect(tree), "/pod", 2, 3));
  CHECK(few.pids == Pids{1, 2, 8});
  CHECK_FALSE(few.complete);
  // A number that the first piece of the list cuts off is not taken for another one.
  for (const auto pid : value_of(sample_processes(detect(tree), "/pod", 10'000)).pids)
    CHECK((pid < 10'000 || pid == 70'000));
}

TEST_CASE("a pod that is gone has no sample") {
  const Tree tree = v1_pod({});
  const auto sample = sample_processes(detect(tree), "/other");
  REQUIRE_FALSE(sample);
  CHECK(sample.error().is_gone());
}

}  // namespace evictd::node::process_sample_test
