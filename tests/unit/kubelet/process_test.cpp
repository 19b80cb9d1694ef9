#include "kubelet/process.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "fixture/tree.hpp"

namespace evictd::kubelet::process_test {
namespace {

using fixture::dir;
using fixture::file;
using fixture::Tree;
using Arguments = std::vector<std::string>;

/// What proc shows of a process. By default that is a service of root's, in the machine's namespaces.
struct Shown {
  std::string cgroup = "0::/system.slice/kubelet.service\n";
  std::string users = "0\t0\t0\t0";
  std::string pids = "812";
  std::string root = "254:1 /";
};

fixture::Entry process(const char* pid, const std::string& name, const Arguments& words, const Shown& shown = {}) {
  std::string line;
  for (const auto& word : words) line.append(word).push_back('\0');
  return dir(pid, {file("comm", name + "\n"), file("cmdline", line), file("cgroup", shown.cgroup),
                   file("status", "Name:\t" + name + "\nUid:\t" + shown.users + "\nNSpid:\t" + shown.pids + "\n"),
                   file("mountinfo", "20 19 0:1 / /proc rw - proc proc rw\n24 1 " + shown.root +
                                         " / rw,relatime shared:1 - ext4 /dev/vda rw\n")});
}

const auto init = process("1", "systemd", {"/sbin/init"});

}  // namespace

TEST_CASE("the kubelet is found by its name, with its arguments") {
  const Tree proc{{dir("self"), init, process("812", "kubelet", {"/usr/bin/kubelet", "--config=/a", "--v", ""})}};
  CHECK(find_process(proc.path()) ==
        Process{.pid = 812, .program = "kubelet", .arguments = {"--config=/a", "--v", ""}, .unit = "kubelet.service"});
}

TEST_CASE("k3s and MicroK8s have a kubelet within a program of their own") {
  const Shown k3s{.cgroup = "0::/system.slice/k3s.service/init\n"};
  CHECK(find_process(Tree{{init, process("7", "k3s-server", {"/usr/local/bin/k3s server", "", ""}, k3s)}}.path()) ==
        Process{.pid = 7, .program = "k3s", .arguments = {"", ""}, .unit = "k3s.service"});
  CHECK(find_process(Tree{{init, process("7", "k3s-agent", {"/usr/local/bin/k3s agent"})}}.path())->program == "k3s");
  CHECK(find_process(Tree{{init, process("7", "kubelite", {"/snap/kubelite", "--kubelet-args-file=/a"},
                                         {.cgroup = "1:name=systemd:/\n"})}}
                         .path()) == Process{.pid = 7, .program = "kubelite", .arguments = {"--kubelet-args-file=/a"}});
}

TEST_CASE("a pod's process is no kubelet, whatever it calls itself") {
  const Tree proc{
      {init,
       process("90", "kubelet", {"kubelet", "--eviction-hard="},
               {.cgroup = "0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podx.slice/cri-y.scope\n"}),
       process("91", "kubelet", {"kubelet"}, {.cgroup = "11:memory:/kubepods/burstable/pod1/c\n0::/\n"}),
       process("92", "kubelet", {"kubelet"}, {.cgroup = "0::/machine.slice/machine-kubepods.slice/x.scope\n"}),
       process("93", "kubelet", {"kubelet"}, {.cgroup = "0::/../../podx/y\n", .pids = "93\t1"}),
       process("812", "kubelet", {"kubelet", "--config=/true"})}};
  CHECK(find_process(proc.path())->pid == 812);
  proc.remove("812");
  CHECK_FALSE(find_process(proc.path()));
}

TEST_CASE("a user makes no kubelet, neither of his own process nor of a setuid program") {
  for (const auto* users : {"1000\t1000\t1000\t1000", "1000\t0\t0\t0", "0\t1000\t0\t0", "", "0"}) {
    CAPTURE(users);
    CHECK_FALSE(find_process(
        Tree{{init, process("90", "kubelet", {"kubelet", "--eviction-hard=memory.available<90%"}, {.users = users})}}
            .path()));
  }
}

TEST_CASE("the paths of one that runs in a container of its own are not this machine's") {
  const auto found = find_process(Tree{
      {init, process("812", "kubelet", {"kubelet", "--config=/a"}, {.cgroup = "0::/docker/1f\n", .root = "0:57 /"})}}
                                      .path());
  REQUIRE(found);
  CHECK(found->unusable == "runs in a container of its own: its files cannot be found from here");
}

TEST_CASE("a command line that does not end says nothing") {
  const auto found =
      find_process(Tree{{init, process("812", "kubelet", {"kubelet", std::string(std::size_t{7} << 20, 'x')})}}.path());
  REQUIRE(found);
  CHECK(found->unusable == "has a command line without an end");
}

TEST_CASE("one that has ended, one that is another program and a missing proc are none") {
  CHECK_FALSE(find_process(Tree{{init, process("5", "kubelet", {})}}.path()));  // a zombie has no command line
  for (const auto* name : {"kubelet-shim", "k3", "k3s-killall.sh", "k3s"})
    CHECK_FALSE(find_process(Tree{{init, process("5", name, {"x"}), dir("7")}}.path()));
  CHECK_FALSE(find_process("/nowhere"));
}

}  // namespace evictd::kubelet::process_test
