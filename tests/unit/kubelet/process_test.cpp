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

fixture::Entry process(const char* pid, const std::string& name, const Arguments& words,
                       const std::string& cgroup = "0::/system.slice/kubelet.service\n") {
  std::string line;
  for (const auto& word : words) line.append(word).push_back('\0');
  return dir(pid, {file("comm", name + "\n"), file("cmdline", line), file("cgroup", cgroup)});
}

}  // namespace

TEST_CASE("the kubelet is found by its name, with its arguments") {
  const Tree proc{{dir("self"), process("1", "systemd", {"/sbin/init"}),
                   process("812", "kubelet", {"/usr/bin/kubelet", "--config=/a", "--v", ""})}};
  CHECK(find_process(proc.path()) ==
        Process{.pid = 812, .program = "kubelet", .arguments = {"--config=/a", "--v", ""}});
}

TEST_CASE("k3s and MicroK8s have a kubelet within a program of their own") {
  CHECK(find_process(Tree{{process("7", "k3s-server", {"/usr/local/bin/k3s server"})}}.path()) ==
        Process{.pid = 7, .program = "k3s", .arguments = {}});
  CHECK(find_process(Tree{{process("7", "k3s-agent", {"/usr/local/bin/k3s agent"})}}.path())->program == "k3s");
  CHECK(find_process(Tree{{process("7", "kubelite", {"/snap/kubelite", "--kubelet-args-file=/a"})}}.path()) ==
        Process{.pid = 7, .program = "kubelite", .arguments = {"--kubelet-args-file=/a"}});
}

TEST_CASE("a pod's process is no kubelet, whatever it calls itself") {
  const Tree proc{{process("90", "kubelet", {"kubelet", "--eviction-hard="},
                           "0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podx.slice/cri-y.scope\n"),
                   process("91", "kubelet", {"kubelet"}, "11:memory:/kubepods/burstable/pod1/c\n0::/\n"),
                   process("812", "kubelet", {"kubelet", "--config=/true"})}};
  CHECK(find_process(proc.path())->pid == 812);
  proc.remove("812");
  CHECK_FALSE(find_process(proc.path()));
}

TEST_CASE("one that has ended, one that is another program and a missing proc are none") {
  CHECK_FALSE(find_process(Tree{{process("5", "kubelet", {})}}.path()));  // a zombie has no command line
  CHECK_FALSE(find_process(Tree{{process("5", "kubelet-shim", {"x"}), process("6", "k3", {"x"}), dir("7")}}.path()));
  CHECK_FALSE(find_process("/nowhere"));
}

}  // namespace evictd::kubelet::process_test
