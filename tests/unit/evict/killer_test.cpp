#include "evict/kill.hpp"

#include <doctest/doctest.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <fstream>
#include <string>
#include <vector>

#include "cri/run.hpp"
#include "fixture/node_tree.hpp"
#include "fixture/real_cgroup.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"

namespace evictd::evict::killer_test {
namespace {

using fixture::dir;
using fixture::file;
using fixture::Sleeper;
using fixture::Tree;

/// A node of cgroup v2 with one pod of one process, which its files cannot kill.
struct Node {
  [[nodiscard]] std::string killed() const {
    std::string content;
    std::ifstream{tree.path("cgroup/pods/pod/cgroup.kill")} >> content;
    return content;
  }

  const Sleeper process;
  const Tree tree{fixture::v2_node({}, 0,
                                   {dir("pods", {dir("pod", {file("cgroup.procs", std::to_string(process.pid()) + "\n"),
                                                             file("cgroup.kill", "")})})})};
  const node::CgroupHierarchy hierarchy =
      fixture::value_of(node::CgroupHierarchy::detect(tree.path("cgroup").native()));
  Reaper reaper;
  boost::asio::io_context reactor{1};
  Killer killer{
      reactor.get_executor(),
      {.hierarchy = hierarchy, .pods_cgroup = "/pods", .reaper = reaper, .is_protected = [](pid_t) { return false; }}};
  const std::vector<Target> targets{{"/pods/pod"}};
};

}  // namespace

TEST_CASE("a few processes are killed before the call returns, and the reaper has them") {
  Node node;
  const auto kill = node.killer.kill_now(node.targets);
  CHECK_FALSE(kill.error);
  CHECK(kill.signalled == 1);
  CHECK(kill.held.empty());
  CHECK(node.killed() == "1");
}

TEST_CASE("beside the reactor the same is done, and its answer comes back to it") {
  Node node;
  auto beside = node.killer.kill_beside(node.targets);
  CHECK(node.killed().empty());
  const auto kill = test::run(node.reactor, std::move(beside));
  CHECK(kill.signalled == 1);
  CHECK(kill.held.empty());
  CHECK(node.killed() == "1");
}

TEST_CASE("nobody outside the pods' cgroup is killed, by either way") {
  Node node;
  const std::vector<Target> outside{{"/other"}};
  CHECK(node.killer.kill_now(outside).error);
  CHECK(test::run(node.reactor, node.killer.kill_beside(outside)).error);
  CHECK(node.killed().empty());
}

}  // namespace evictd::evict::killer_test
