#include "app/find_kubelet.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "fixture/result.hpp"
#include "fixture/tree.hpp"
#include "kube/api_server.hpp"
#include "os/file_descriptor.hpp"

namespace evictd::app::find_kubelet_test {
namespace {

using fixture::value_of;
using BySignal = core::EvictionSettings::BySignal;

/// evictd's own configuration, by which the kubelet is asked; there are no processes.
config::AgentConfiguration asking(const std::string& url, const fixture::Tree& proc) {
  config::AgentConfiguration agent;
  agent.node.proc_mount = proc.path();
  agent.thresholds.configz = true;
  agent.pod_sources.kubelet_url = url;
  return agent;
}

/// As far as a kubelet is told by it.
fixture::Entry running_kubelet() {
  return fixture::dir("812", {fixture::file("comm", "kubelet\n"), fixture::file("cmdline", std::string("kubelet\0", 8)),
                              fixture::file("cgroup", "0::/system.slice/kubelet.service\n"),
                              fixture::file("status", "Name:\tkubelet\nUid:\t0\t0\t0\t0\nNSpid:\t812\n"),
                              fixture::file("mountinfo", "24 1 0:24 / / rw - ext4 /dev/vda rw\n")});
}

}  // namespace

TEST_CASE("a kubelet that is asked says what it goes by") {
  const fixture::Tree proc;
  test::ApiServer server;
  server.then(test::answers(200, R"({"kubeletconfig": {"evictionHard": {"memory.available": "300Mi"}}})"));
  const auto found = value_of(find_kubelet({}, asking(server.url(), proc)));
  CHECK_FALSE(found.unknown);
  CHECK(found.sources.values.eviction.hard == BySignal{{"memory.available", "300Mi"}});
  CHECK(found.sources.documents == std::vector{server.url() + "/configz"});
  CHECK(server.lines() == std::vector<std::string>{"GET /configz"});
}

TEST_CASE("what a kubelet goes by that does not say so is unknown, and the reason is one line") {
  const fixture::Tree proc;
  test::ApiServer server;
  const auto why = [&](test::Handler handler) {
    server.then(std::move(handler));
    return value_of(find_kubelet_in_time({}, asking(server.url(), proc))).unknown.value_or("known");
  };
  const auto place = server.url() + "/configz";
  CHECK(why(test::refuses(403, "Forbidden", "evictd may not")) ==
        "the kubelet does not say what it goes by: " + place + ": 403 Forbidden: evictd may not");
  CHECK(why(test::answers(200, "no JSON")).starts_with(place + ": is not JSON"));
  CHECK(why(test::answers(200, std::string(std::size_t{2} << 20, ' '))).find(server.url()) != std::string::npos);
  CHECK(why([](test::Exchange& exchange) { exchange.hold(); }) ==
        "the kubelet does not say what it goes by: " + server.url() + ": no answer in time");
  server.stop_listening();
  CHECK(value_of(find_kubelet_in_time({}, asking(server.url(), proc))).unknown->find("refused") != std::string::npos);
}

TEST_CASE("a kubelet cannot be asked of whom it is not said where it is") {
  const fixture::Tree proc;
  CHECK(fixture::error_of(find_kubelet({}, asking("", proc))) ==
        "thresholds.configz: podSources.kubelet.url does not say whom to ask");
}

TEST_CASE("a file that is named is all there is, and its errors are the operator's") {
  const fixture::Tree tree{fixture::file("kubelet.yaml", "kind: Pod\n")};
  CHECK(fixture::error_of(find_kubelet(tree.path("kubelet.yaml"), asking("http://127.0.0.1:1", tree)))
            .find("kubelet.yaml:1") != std::string::npos);
}

TEST_CASE("what is named or asked for holds although nobody gets through with the processes; one may be a kubelet") {
  const fixture::Tree tree{
      {fixture::file("kubelet.yaml", "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"),
       fixture::dir("proc", {fixture::dir("1")})}};
  const auto stuck = tree.path("proc/1/mountinfo");
  REQUIRE(::mkfifo(stuck.c_str(), 0600) == 0);
  test::ApiServer server;
  server.then(test::answers(200, R"({"kubeletconfig": {"evictionHard": {"memory.available": "300Mi"}}})"));
  config::AgentConfiguration agent;
  agent.node.proc_mount = tree.path("proc");
  std::optional<std::string> named;
  SUBCASE("named") { named = tree.path("kubelet.yaml"); }
  SUBCASE("asked for") {
    agent.thresholds.configz = true;
    agent.pod_sources.kubelet_url = server.url();
  }
  const auto found = value_of(find_kubelet_in_time(named, agent));
  CHECK_FALSE(found.unknown);
  CHECK(found.sources.documents == std::vector{named.value_or(server.url() + "/configz")});
  CHECK(found.runs);
  CHECK_FALSE(found.pid);
  // Whoever looks through the processes is still at it, and ends now.
  const os::FileDescriptor released{::open(stuck.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC)};
  CHECK(released);
}

TEST_CASE("a node may be a kubelet's where one runs, was not found in time, or is spoken of") {
  const fixture::Tree tree{
      {fixture::file("kubelet.yaml", "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"),
       fixture::dir("none"), fixture::dir("one", {running_kubelet()})}};
  config::AgentConfiguration agent;
  const auto is_kubelets = [&](const char* proc) {
    agent.node.proc_mount = tree.path(proc);
    return may_be_kubelets(value_of(find_kubelet(tree.path("kubelet.yaml"), agent)), agent);
  };
  CHECK_FALSE(is_kubelets("none"));
  CHECK(is_kubelets("one"));
  CHECK_FALSE(value_of(find_kubelet(tree.path("kubelet.yaml"), agent)).pid);  // what it goes by is another matter

  CHECK(may_be_kubelets({.unknown = "its disk does not answer"}, {}));
  agent.pod_sources.api_server = true;
  CHECK(is_kubelets("none"));
  agent = {};
  agent.pod_sources.kubelet_url = "https://127.0.0.1:10250";
  CHECK(is_kubelets("none"));
}

}  // namespace evictd::app::find_kubelet_test
