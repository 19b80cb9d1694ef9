#include "node/own_place.hpp"

#include <doctest/doctest.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "fixture/result.hpp"
#include "fixture/tree.hpp"
#include "support/skip.hpp"

namespace evictd::node::own_place_test {

using fixture::dir;
using fixture::error_of;
using fixture::file;
using fixture::Tree;
using fixture::value_of;

namespace {

/// As a service whose unit gives it no CAP_DAC_OVERRIDE. Capabilities belong to a thread, and go with it.
void without_dac_override(const std::function<void()>& body) {
  std::thread{[&] {
    __user_cap_header_struct head{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    __user_cap_data_struct sets[2]{};
    ::syscall(SYS_capget, &head, sets);
    sets[0].permitted &= ~(1U << CAP_DAC_OVERRIDE);
    sets[0].effective &= ~(1U << CAP_DAC_OVERRIDE);
    ::syscall(SYS_capset, &head, sets);
    body();
  }}.join();
}

/// A v2 hierarchy whose root nobody may write to, as the kernel makes it, with a unit's cgroup and a proc beside it.
struct Host {
  Tree tree{{dir("cgroup", {file("cgroup.controllers", "memory pids\n"),
                            dir("system.slice",
                                {dir("evictd.service", {file("cgroup.procs", ""), file("cgroup.subtree_control", ""),
                                                        dir("evictd", {file("cgroup.procs", "")})})})}),
             dir("proc", {dir("self", {file("cgroup", "0::/system.slice/evictd.service\n")})})}};
  CgroupHierarchy hierarchy = value_of(CgroupHierarchy::detect(tree.path("cgroup")));

  Host() { ::chmod(tree.path("cgroup").c_str(), 0555); }
  ~Host() { ::chmod(tree.path("cgroup").c_str(), 0755); }
  void delegate() const {
    REQUIRE(::setxattr(tree.path("cgroup/system.slice/evictd.service").c_str(), "user.delegate", "1", 1, 0) == 0);
  }
  [[nodiscard]] os::FileResult<OwnPlace> place() const {
    os::FileResult<OwnPlace> place;
    without_dac_override([&] { place = find_own_place(hierarchy, "/", tree.path("proc")); });
    return place;
  }
};

}  // namespace

TEST_CASE("where evictd may write to the node's cgroup, or that is still to come, its own are there") {
  const Host host;
  ::chmod(host.tree.path("cgroup").c_str(), 0755);
  CHECK(value_of(host.place()).cgroup == "/");
  CHECK_FALSE(value_of(host.place()).delegated);
  CHECK(value_of(find_own_place(host.hierarchy, "/later", host.tree.path("proc"))).cgroup == "/later");
}

TEST_CASE("they are in the cgroup that its service manager has delegated to it, wherever else it may write") {
  SKIP_UNLESS(::geteuid() == 0, "not root");
  const Host host;
  host.delegate();
  CHECK(value_of(find_own_place(host.hierarchy, "/", host.tree.path("proc"))).delegated);
  CHECK(value_of(find_own_place(host.hierarchy, "/later", host.tree.path("proc"))).delegated);
  CHECK(value_of(host.place()).cgroup == "/system.slice/evictd.service");
  CHECK(value_of(host.place()).delegated);
  // Where it has moved before, or was started in a cgroup of its own right below (DelegateSubgroup=).
  host.tree.write("proc/self/cgroup", "0::/system.slice/evictd.service/evictd\n");
  CHECK(value_of(host.place()).cgroup == "/system.slice/evictd.service");

  CHECK(prepare_own_place(host.hierarchy, value_of(host.place())).has_value());
  const auto written = [&](const char* name) {
    std::ifstream file{host.tree.path("cgroup/system.slice/evictd.service") / name};
    return std::string{std::istreambuf_iterator<char>{file}, {}};
  };
  CHECK(written("evictd/cgroup.procs") == "0");
  CHECK(written("cgroup.subtree_control") == "+memory");
}

TEST_CASE("with neither the error says what would help") {
  const Host host;
  CHECK(error_of(host.place()) == host.tree.path("cgroup").native() +
                                      ": Permission denied, and no cgroup is delegated to evictd (Delegate= in its "
                                      "unit)");
}

TEST_CASE("evictd runs in a cgroup or below it, or in a container, whose namespace does not show where it is") {
  const Tree tree{
      dir("proc", {dir("self", {file("cgroup", "0::/kubepods/pod1/a\n")}), dir("1", {file("cgroup", "0::/init\n")})})};
  const auto in = [&](const std::string& cgroup) { return may_run_in(cgroup, tree.path("proc")); };
  CHECK(in("/kubepods"));
  CHECK(in("/kubepods/pod1/a"));
  CHECK_FALSE(in("/kube"));
  CHECK_FALSE(in("/kubepods/pod1/a/b"));
  tree.write("proc/self/cgroup", "0::/system.slice/evictd.service\n");
  CHECK_FALSE(in("/kubepods"));
  tree.write("proc/self/cgroup", "0::/\n");
  CHECK_FALSE(in("/kubepods"));
  tree.write("proc/1/cgroup", "0::/../../../init\n");
  CHECK(in("/kubepods"));
  tree.remove("proc/1");
  CHECK_FALSE(in("/kubepods"));
}

}  // namespace evictd::node::own_place_test
