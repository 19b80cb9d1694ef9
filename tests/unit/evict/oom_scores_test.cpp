#include "evict/oom_scores.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <tuple>

#include "fixture/node_tree.hpp"
#include "fixture/real_cgroup.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"
#include "node/cgroup_processes.hpp"
#include "support/skip.hpp"

namespace evictd::evict::oom_scores_test {
namespace {

using fixture::dir;
using fixture::file;
using fixture::own_cgroup;
using fixture::RealCgroup;
using namespace std::chrono_literals;

constexpr std::int64_t memory = std::int64_t{1} << 30;

/// A node of cgroup v1 whose processes are files.
struct Node {
  Node()
      : tree{fixture::v1_node({}, {},
                              {dir("poda", {file("cgroup.procs", "")}), dir("podb", {file("cgroup.procs", "")})})} {}

  /// `share`: thousandths of the memory.
  void process(int pid, int share, int adj, int parent = 1, int start = 500) const {
    const auto pages = memory / 1000 * share / ::sysconf(_SC_PAGESIZE) + 1;
    tree.add("proc",
             dir(std::to_string(pid),
                 {file("oom_score_adj", fmt::format("{}\n", adj)), file("statm", fmt::format("9 {} 9\n", pages)),
                  file("stat",
                       fmt::format("{} (a) b) S {} 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {} 0\n", pid, parent, start))}));
  }
  void list(const std::string& pod, const std::string& pids) const {
    tree.write("cgroup/memory/" + pod + "/cgroup.procs", pids);
  }
  [[nodiscard]] int adj(int pid) const {
    std::ifstream in{tree.path(fmt::format("proc/{}/oom_score_adj", pid))};
    int value = -5000;
    in >> value;
    return value;
  }
  [[nodiscard]] OomScores::Places places() const {
    return {.cgroup_mount = tree.path("cgroup"),
            .proc = tree.path("proc").native(),
            .note = tree.path() / "run" / "oom-scores",
            .is_protected = [](pid_t pid) { return pid == 99; },
            .memory = memory};
  }
  [[nodiscard]] bool has_note() const { return std::filesystem::exists(places().note); }

  fixture::Tree tree;
};

const OomPlan a_before_b{.pods = {{"/poda", 999}, {"/podb", 999}}, .behind = 0};

}  // namespace

TEST_CASE("the first pod's process is raised above the second's, noted, and given back") {
  const Node node;
  node.process(7, 50, 600);
  node.process(8, 300, 700);
  node.list("poda", "7\n");
  node.list("podb", "8\n");
  OomScores scores{node.places()};
  const auto raised = scores.follow(a_before_b);
  CHECK(raised.error.empty());
  CHECK(raised.changed == 1);
  CHECK(node.adj(7) >= 955);
  CHECK(node.adj(7) <= 956);
  CHECK(node.adj(8) == 700);
  CHECK(node.has_note());
  CHECK(scores.follow(a_before_b).changed == 0);  // it is as it should be
  CHECK(scores.restore().changed == 1);
  CHECK(node.adj(7) == 600);
  CHECK_FALSE(node.has_note());
}

TEST_CASE("protected processes, and those that somebody has set below 0, are left alone") {
  const Node node;
  node.process(7, 50, 600);
  node.process(9, 1, -998);
  node.process(99, 1, 500);
  node.process(8, 300, 700);
  node.list("poda", "7\n9\n99\n");
  node.list("podb", "8\n");
  OomScores scores{node.places()};
  CHECK(scores.follow(a_before_b).changed == 1);
  CHECK(node.adj(9) == -998);
  CHECK(node.adj(99) == 500);
}

TEST_CASE("what a child was born with is its parent's: both get back what the parent had") {
  const Node node;
  node.process(7, 50, 600);
  node.process(8, 300, 700);
  node.list("poda", "7\n");
  node.list("podb", "8\n");
  OomScores scores{node.places()};
  CHECK(scores.follow(a_before_b).changed == 1);
  node.process(17, 1, node.adj(7), 7);  // inherited
  node.process(18, 1, node.adj(7), 1);  // the same, and its parent has ended
  node.process(19, 1, 650, 7);          // it has chosen that itself
  node.list("poda", "7\n17\n18\n19\n");
  SUBCASE("at once") {}
  SUBCASE("after another look, at which all of them are raised") {
    CHECK(scores.follow(a_before_b).error.empty());
    CHECK(node.adj(19) == node.adj(7));
  }
  CHECK(scores.restore().error.empty());
  CHECK(node.adj(7) == 600);
  CHECK(node.adj(17) == 600);
  CHECK(node.adj(18) == 600);
  CHECK(node.adj(19) == 650);
}

TEST_CASE(
    "nobody is raised to what another process of the pod has of itself: later ones like it are not taken for raised") {
  const Node node;
  node.process(7, 5, 600);
  node.process(9, 0, 999);
  node.list("poda", "7\n9\n");
  OomScores scores{node.places()};
  const OomPlan before_best_effort{.pods = {{"/poda", 999}}, .behind = 1000};
  CHECK(scores.follow(before_best_effort).changed == 1);
  CHECK(node.adj(7) == 998);
  node.process(19, 0, 999, 1, 900);  // a probe of the second container, or a child of its own
  node.list("poda", "7\n9\n19\n");
  SUBCASE("at once") {}
  SUBCASE("after another look") { CHECK(scores.follow(before_best_effort).changed == 0); }
  CHECK(scores.restore().error.empty());
  CHECK(node.adj(7) == 600);
  CHECK(node.adj(9) == 999);
  CHECK(node.adj(19) == 999);
}

TEST_CASE("what a container without a request has is nobody's raised value: it may be started at any time") {
  const Node node;
  node.process(7, 5, 600);
  node.list("poda", "7\n");
  {
    OomScores killed{node.places()};
    CHECK(killed.follow({.pods = {{"/poda", 999}}, .behind = 1000}).changed == 1);
  }
  node.process(9, 0, 999, 1, 900);
  node.list("poda", "7\n9\n");
  CHECK(restore_left_oom_scores(node.places()) == "gave 1 processes the oom_score_adj back that they had");
  CHECK(node.adj(7) == 600);
  CHECK(node.adj(9) == 999);
}

TEST_CASE("what those have of themselves that are not raised is nobody's raised value either") {
  const Node node;
  node.process(7, 5, 600);
  std::string pids = "7\n";
  const auto list = [&](int pid, int adj) {
    node.process(pid, 0, adj);
    pids += std::to_string(pid) + "\n";
  };
  SUBCASE("who is protected") { list(99, 998); }
  SUBCASE("who is one of too many to be looked at") {
    for (int pid = 100; pid < 100 + static_cast<int>(OomScores::most_looked_at); ++pid) list(pid, 300);
    list(1000, 998);
  }
  node.list("poda", pids);
  OomScores scores{node.places()};
  CHECK(scores.follow({.pods = {{"/poda", 999}}, .behind = 1000}).error.empty());
  CHECK(node.adj(7) == 997);
  CHECK(scores.restore().error.empty());
  CHECK(node.adj(7) == 600);
  CHECK(node.adj(99) == (pids.ends_with("99\n") ? 998 : -5000));
  CHECK(node.adj(1000) == (pids.ends_with("1000\n") ? 998 : -5000));
}

TEST_CASE("a process that changed its own since keeps it") {
  const Node node;
  node.process(7, 50, 600);
  node.process(8, 300, 700);
  node.list("poda", "7\n");
  node.list("podb", "8\n");
  OomScores scores{node.places()};
  CHECK(scores.follow(a_before_b).changed == 1);
  node.tree.write("proc/7/oom_score_adj", "990\n");
  CHECK(scores.restore().changed == 0);
  CHECK(node.adj(7) == 990);
}

TEST_CASE("a pid that another process has by now is not written to") {
  const Node node;
  node.process(7, 50, 600);
  node.process(8, 300, 700);
  node.list("poda", "7\n");
  node.list("podb", "8\n");
  OomScores scores{node.places()};
  CHECK(scores.follow(a_before_b).changed == 1);
  const auto raised = node.adj(7);
  node.process(7, 50, raised, 1, 900);
  SUBCASE("of another pod") { node.list("poda", ""); }
  SUBCASE("protected by nothing but its own choice") { node.tree.write("proc/7/oom_score_adj", "980\n"); }
  const auto own = node.adj(7);
  CHECK(scores.restore().changed == 0);
  CHECK(node.adj(7) == own);
}

TEST_CASE("a pod that is no longer among the likeliest gets its own back") {
  const Node node;
  node.process(7, 50, 600);
  node.process(8, 300, 700);
  node.list("poda", "7\n");
  node.list("podb", "8\n");
  OomScores scores{node.places()};
  CHECK(scores.follow(a_before_b).changed == 1);
  CHECK(scores.follow({.pods = {{"/podb", 999}}, .behind = 0}).changed == 1);
  CHECK(node.adj(7) == 600);
  CHECK_FALSE(node.has_note());
}

TEST_CASE("what a killed evictd has raised is given back by the next one, once") {
  const Node node;
  node.process(7, 50, 600);
  node.process(8, 300, 700);
  node.list("poda", "7\n");
  node.list("podb", "8\n");
  {
    OomScores killed{node.places()};
    CHECK(killed.follow(a_before_b).changed == 1);
  }
  node.process(17, 1, node.adj(7), 7);
  node.list("poda", "7\n17\n");
  CHECK(restore_left_oom_scores(node.places()) == "gave 2 processes the oom_score_adj back that they had");
  CHECK(node.adj(7) == 600);
  CHECK(node.adj(17) == 600);
  CHECK_FALSE(node.has_note());
  CHECK(restore_left_oom_scores(node.places()).empty());
}

TEST_CASE("a note that is damaged does no harm") {
  const Node node;
  node.process(7, 50, 600);
  node.list("poda", "7\n");
  node.tree.add("", dir("run", {file("oom-scores", "value 600 1\npod /poda\nvalue x\nprocess 7\npod\nwhat\n")}));
  CHECK(restore_left_oom_scores(node.places()) == "gave 0 processes the oom_score_adj back that they had");
  CHECK(node.adj(7) == 600);
  CHECK_FALSE(node.has_note());
}

TEST_CASE("after the end nothing is raised any more, and without a place for the note nothing is at all") {
  const Node node;
  node.process(7, 50, 600);
  node.process(8, 300, 700);
  node.list("poda", "7\n");
  node.list("podb", "8\n");
  SUBCASE("the end") {
    OomScores scores{node.places()};
    CHECK(scores.follow(a_before_b).changed == 1);
    CHECK(scores.end().changed == 1);
    CHECK(scores.follow(a_before_b).changed == 0);
  }
  SUBCASE("no place") {
    auto places = node.places();
    places.note = "/proc/nowhere/oom-scores";
    OomScores scores{places};
    CHECK_FALSE(scores.follow(a_before_b).error.empty());
  }
  CHECK(node.adj(7) == 600);
}

TEST_CASE("a pod that cannot be looked at for the moment stays noted, and is given back what it had later") {
  const Node node;
  node.process(10, 100, 0);
  node.process(20, 500, 0);
  node.list("poda", "10\n");
  node.list("podb", "20\n");
  OomScores scores{node.places()};
  REQUIRE(scores.follow(a_before_b).error.empty());
  const auto raised = node.adj(10);
  REQUIRE(raised > 0);
  node.tree.remove("cgroup/memory/poda/cgroup.procs");
  node.tree.add("cgroup/memory/poda", dir("cgroup.procs", {}));
  CHECK_FALSE(scores.restore().error.empty());
  CHECK(node.has_note());
  node.tree.remove("cgroup/memory/poda/cgroup.procs");
  node.tree.add("cgroup/memory/poda", file("cgroup.procs", "10\n"));
  CHECK(scores.restore().changed == 1);
  CHECK(node.adj(10) == 0);
  CHECK_FALSE(node.has_note());
}

TEST_CASE("what forks while it is given back what it had leaves nobody raised" * doctest::test_suite("real cgroups")) {
  SKIP_IF(fixture::no_real_cgroups());
  const RealCgroup pods{own_cgroup()};
  const RealCgroup pod{own_cgroup("/pod")};
  const auto parent = ::fork();
  if (parent == 0) {
    // Some three hundred at a time.
    ::execlp("perl", "perl", "-e",
             "$SIG{CHLD} = 'IGNORE'; while (1) { if (!fork) { select undef, undef, undef, 0.3; exit } "
             "select undef, undef, undef, 0.001 }",
             nullptr);
    ::_exit(127);
  }
  REQUIRE(parent > 0);
  pod.put(parent);
  const auto listed = [&] { return fixture::value_of(node::processes(fixture::real_hierarchy(), pod.path())); };
  const Node node;
  auto places = node.places();
  places.cgroup_mount = "/sys/fs/cgroup";
  places.proc = "/proc";
  OomScores scores{places};
  for (int i = 0; i < 5000 && listed().size() < 50; ++i) std::this_thread::sleep_for(1ms);
  const auto adj_of = [](pid_t pid) {
    std::ifstream in{fmt::format("/proc/{}/oom_score_adj", pid)};
    int value = -5000;
    in >> value;
    return value;
  };
  const auto own = adj_of(parent);
  std::ignore = scores.follow({.pods = {{pod.path(), 999}}, .behind = 500});
  const bool was_raised = adj_of(parent) > own;
  std::ignore = scores.restore();
  int raised = 0;
  for (const auto pid : listed()) raised += adj_of(pid) > own ? 1 : 0;
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  for (int i = 0; i < 5000 && !listed().empty(); ++i) std::this_thread::sleep_for(1ms);
  CHECK(was_raised);
  CHECK(raised == 0);
  CHECK_FALSE(node.has_note());
}

}  // namespace evictd::evict::oom_scores_test
