// The node goes down: the real logind, and after everything else a real power-off, of which the host sees what was
// left.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "node.hpp"
#include "testbed/files.hpp"
#include "testbed/process.hpp"
#include "testbed/wait.hpp"

namespace node_suite::shutdown_test {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using evictd::core::QosClass;
using Lines = std::vector<std::string>;

namespace {

constexpr int critical = 2'000'000'000;
const fs::path kubelet_file = "/var/lib/kubelet/config.yaml";

fs::path record() {
  const auto* path = std::getenv("EVICTD_NODE_RECORD");
  REQUIRE(path != nullptr);
  return path;
}

/// Pods of priority 0 get 180 s, those from 1000 on 120 s, critical ones 60 s: an emulated runtime takes its time.
void let_shutdowns_wait(Node& node) {
  fs::create_directories(kubelet_file.parent_path());
  testbed::replace_file(kubelet_file, R"(apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: systemd
evictionMaxPodGracePeriod: 10
shutdownGracePeriodByPodPriority:
- {priority: 0, shutdownGracePeriodSeconds: 180}
- {priority: 1000, shutdownGracePeriodSeconds: 120}
- {priority: 2000000000, shutdownGracePeriodSeconds: 60}
)");
  node.configure("shutdown: {raiseInhibitDelay: true}");
  testbed::wait_until("a shutdown will wait for the pods", 60s,
                      [&] { return node.status().shutdown().state() == "ready"; });
}

bool is_locked() {
  const auto list = testbed::run({"systemd-inhibit", "--list", "--no-legend", "--no-pager"});
  return list.find("evictd") != std::string::npos;
}

/// Records, a line each in the record's "pods", that it runs, that it was told to end, and, each second, that it has
/// not yet ended; it takes `takes` seconds for it.
testbed::PodSpec recording(const std::string& name, int priority, int takes) {
  auto spec = pod(name, QosClass::BestEffort, {});
  spec.name_space = "kube-system";  // where a pod is believed that it is critical
  spec.priority = priority;
  spec.termination_grace_period = 60s;
  spec.containers[0].command = {
      "/bin/sh", "-c",
      fmt::format("end() {{ echo {0} told >>/record/pods; i=0; while [ $i -lt {1} ]; do sleep 1; i=$((i+1)); "
                  "echo {0} ends >>/record/pods; done; exit 0; }}; trap end TERM; echo {0} runs >>/record/pods; "
                  "while :; do sleep 1; done",
                  name, takes)};
  spec.containers[0].mounts.push_back({.host_path = record(), .container_path = "/record"});
  return spec;
}

Lines lines_of(const std::string& text) {
  Lines lines;
  std::istringstream in{text};
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("logind is told to wait long enough, and its lock is held while one evictd takes the place of another") {
  Node node;
  let_shutdowns_wait(node);
  CHECK(node.status().shutdown().error().empty());
  CHECK(node.status().shutdown().inhibit_delay().seconds() == 360);
  CHECK(testbed::read_file("/run/systemd/logind.conf.d/99-evictd.conf").find("InhibitDelayMaxSec=360") !=
        std::string::npos);
  testbed::wait_until("the lock is held", 60s, is_locked);
  testbed::wait_until("systemd keeps it", 60s, [] { return std::stoi(property("NFileDescriptorStore")) >= 1; });

  const auto first = main_pid();
  ::kill(first, SIGKILL);
  bool was_locked = true;
  testbed::wait_until("systemd has started another evictd", 60s, [&] {
    was_locked = was_locked && is_locked();
    const auto pid = main_pid();
    return pid != 0 && pid != first && property("ActiveState") == "active";
  });
  CHECK(was_locked);
}

TEST_SUITE("before the power-off") {
  TEST_CASE("pods of three priorities run when the system is told to power off") {
    Node node;
    let_shutdowns_wait(node);
    fs::remove(record() / "pods");
    for (const auto& spec : {recording("vital", critical, 0), recording("first", 0, 3), recording("second", 1000, 2)})
      node.leave(node.run(spec));
    testbed::wait_until("all of them run", 60s, [] {
      const auto text = testbed::try_read_file(record() / "pods").value_or("");
      return lines_of(text).size() == 3;
    });
  }
}

TEST_SUITE("after the power-off") {
  TEST_CASE("the power-off has waited for the pods, group by group, and evictd was the last to go") {
    const auto said = lines_of(testbed::read_file(record() / "pods"));
    const Lines told{said.begin() + 3, said.end()};
    CHECK(told == Lines{"first told", "first ends", "first ends", "first ends", "second told", "second ends",
                        "second ends", "vital told"});
    const auto console = testbed::read_file(record() / "console");
    CAPTURE(console.substr(console.size() - std::min<std::size_t>(console.size(), 4000)));
    const auto ended = console.rfind("all pods have ended: the shutdown goes on");
    const auto allowed = console.rfind("System is powering down");  // logind, once nobody has a lock any more
    const auto down = console.rfind("reboot: Power down");
    REQUIRE(down != std::string::npos);
    CHECK(ended < allowed);
    CHECK(allowed < down);
  }
}

}  // namespace node_suite::shutdown_test
