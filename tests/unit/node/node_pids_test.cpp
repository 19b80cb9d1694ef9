#include "node/node_pids.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "fixture/node_tree.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"
#include "support/skip.hpp"

namespace evictd::node::node_pids_test {
namespace {

using core::Observation;
using fixture::dir;
using fixture::error_of;
using fixture::file;
using fixture::Tree;
using fixture::value_of;

const core::Instant now{std::chrono::seconds(100)};

fixture::Entry pids(std::string name, const std::string& limit, int current) {
  return dir(std::move(name), {file("pids.max", limit + "\n"), file("pids.current", fmt::format("{}\n", current))});
}

/// A node of 1000 process ids, of which 300 are taken.
struct Node {
  explicit Node(const std::vector<fixture::Entry>& entries, std::string cgroup_root = "/")
      : tree(entries), settings(fixture::settings_for(tree, std::move(cgroup_root))) {
    tree.add("proc", file("loadavg", "0.20 0.18 0.12 3/300 11206\n"));
    tree.add("proc", dir("sys", {dir("kernel", {file("pid_max", "1000\n"), file("threads-max", "2000\n")})}));
  }

  [[nodiscard]] Result<NodePids> open() const { return NodePids::open(hierarchy, settings); }

  Tree tree;
  config::NodeSettings settings;
  CgroupHierarchy hierarchy = value_of(CgroupHierarchy::detect(settings.cgroup_mount));
};

std::vector<fixture::Entry> v1(std::vector<fixture::Entry> pids_hierarchy = {}) {
  return fixture::v1_node({}, {}, {}, std::move(pids_hierarchy));
}

Result<Observation> observed(NodePids& reader) {
  core::Observations observations;
  const auto errors = reader.observe(observations, now);
  if (!errors.empty()) return std::unexpected(errors.front());
  return *observations[core::Signal::PidAvailable];
}

Result<Observation> observed(NodePids&& reader) { return observed(reader); }

}  // namespace

TEST_CASE("the machine has the smaller of pid_max and threads-max, less its tasks") {
  const Node node{v1()};
  auto reader = value_of(node.open());
  CHECK(value_of(observed(reader)) == Observation{.available = 700, .capacity = 1000, .time = now});

  node.tree.write("proc/sys/kernel/threads-max", "400\n");
  CHECK(value_of(observed(reader)) == Observation{.available = 100, .capacity = 400, .time = now});
}

TEST_CASE("more tasks than there should be leave less than nothing") {
  const Node node{v1()};
  node.tree.write("proc/sys/kernel/pid_max", "250\n");
  CHECK(value_of(observed(value_of(node.open()))).available == -50);
}

TEST_CASE("a limit of the node's cgroup counts where it is the smaller one") {
  const Node tight{v1({pids("lab", "500", 450)}), "/lab"};
  CHECK(value_of(observed(value_of(tight.open()))) == Observation{.available = 50, .capacity = 500, .time = now});
  const Node wide{v1({pids("lab", "5000", 450)}), "/lab"};
  CHECK(value_of(observed(value_of(wide.open()))) == Observation{.available = 700, .capacity = 1000, .time = now});
  const Node none{v1({pids("lab", "max", 450)}), "/lab"};
  CHECK(value_of(observed(value_of(none.open()))) == Observation{.available = 700, .capacity = 1000, .time = now});
}

TEST_CASE("on cgroup v2 the limit is read beside the memory files") {
  auto lab = fixture::v2_memory({});
  lab.push_back(file("pids.max", "500\n"));
  lab.push_back(file("pids.current", "450\n"));
  const Node node{fixture::v2_node({}, 0, {dir("lab", std::move(lab))}), "/lab"};
  CHECK(value_of(observed(value_of(node.open()))).available == 50);

  const Node root{fixture::v2_node({}, 0)};
  CHECK(value_of(observed(value_of(root.open()))).available == 700);
}

TEST_CASE("a cgroup that comes later sets its limit from then on") {
  const Node node{v1(), "/lab"};
  auto reader = value_of(node.open());
  CHECK(value_of(observed(reader)).capacity == 1000);
  node.tree.add("cgroup/pids", pids("lab", "500", 450));
  CHECK(value_of(observed(reader)).capacity == 500);
  node.tree.write("cgroup/pids/lab/pids.max", "600\n");
  CHECK(value_of(observed(reader)).capacity == 600);
}

TEST_CASE("what proc lacks or garbles is an error that names the key and the file") {
  const Node node{v1()};
  auto reader = value_of(node.open());
  node.tree.write("proc/loadavg", "0.20 0.18 0.12 3\n");
  CHECK(error_of(observed(reader)) ==
        "node.procMount: " + node.tree.path("proc").native() + "/loadavg: no number of tasks behind \"/\"");
  node.tree.remove("proc/loadavg");
  CHECK(error_of(node.open()) ==
        "node.procMount: " + node.tree.path("proc").native() + "/loadavg: No such file or directory");
}

TEST_CASE("a garbled limit is an error that names the key and the file") {
  const Node node{v1({pids("lab", "many", 1)}), "/lab"};
  CHECK(error_of(observed(value_of(node.open()))) ==
        "node.cgroupRoot: " + node.tree.path("cgroup").native() + "/pids/lab/pids.max: \"many\" is not a limit");
}

TEST_CASE("the kernel's own files say how many process ids are left") {
  const auto hierarchy = CgroupHierarchy::detect("/sys/fs/cgroup");
  SKIP_UNLESS(hierarchy, hierarchy.error().message);
  const auto seen = value_of(observed(value_of(NodePids::open(*hierarchy, {}))));
  CHECK(seen.available > 0);
  CHECK(seen.available < seen.capacity);
}

TEST_CASE("between observations the files that are open say what is left") {
  const Node node{v1({pids("lab", "500", 450)}), "/lab"};
  auto reader = value_of(node.open());
  CHECK(reader.available(core::Signal::PidAvailable) == 700);  // the cgroup is looked for by observe()
  CHECK(value_of(observed(reader)).available == 50);
  node.tree.write("cgroup/pids/lab/pids.current", "470\n");
  CHECK(reader.available(core::Signal::PidAvailable) == 30);
  node.tree.write("cgroup/pids/lab/pids.max", "max\n");
  CHECK(reader.available(core::Signal::PidAvailable) == 700);
  node.tree.write("proc/loadavg", "0.20 0.18 0.12 3\n");
  CHECK_FALSE(reader.available(core::Signal::PidAvailable));
}

}  // namespace evictd::node::node_pids_test
