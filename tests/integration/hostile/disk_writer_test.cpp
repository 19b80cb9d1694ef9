#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "history.hpp"
#include "small_disk.hpp"
#include "soon.hpp"
#include "testbed/agent.hpp"
#include "testbed/files.hpp"
#include "testbed/testbed.hpp"
#include "testbed/wait.hpp"
#include "victims.hpp"

namespace integration::disk_writer_test {

using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::v1::Event;

namespace {

/// A node whose images, layers, volumes and logs lie on one small disk.
struct Node {
  SmallDisk disk{{.bytes = 900 * mebi}};
  testbed::Testbed testbed{
      {.node = {.memory_limit = 2048 * mebi}, .containerd = {.root = disk.directory("containerd")}}};

  testbed::RunningPod run(const std::string& name, QosClass qos, const std::string& script) {
    const auto control = testbed.directory() / name;
    std::filesystem::create_directory(control);
    testbed::PodSpec pod{.name = name, .qos = qos, .containers = {{.command = {"sh", "-c", script}}}};
    pod.containers[0].mounts.push_back({.host_path = control, .container_path = "/control"});
    return testbed.cri().run_pod(pod);
  }
};

}  // namespace

TEST_SUITE("hostile") {
  TEST_CASE(
      "of a disk that fills within seconds only the writer goes, though the runtime knows nothing of its layer yet") {
    Node node;
    const auto wait_and = [](const std::string& then) {
      return "while [ ! -e /control/go ]; do sleep 0.05; done; " + then;
    };
    const auto sleeper = node.run("sleeper", QosClass::Burstable, "echo x > /small; exec load hold 4Mi");
    const auto other = node.run("other", QosClass::BestEffort, "echo x > /small; exec load hold 4Mi");
    const auto writer =
        node.run("writer", QosClass::BestEffort, wait_and("mkdir /data; exec load write /data 700Mi 500Mi/s"));
    // Crossed once 300 MiB are written.
    const auto percent = (node.disk.available() - 300 * mebi) * 100 / (900 * mebi);
    testbed::Agent agent{node.testbed,
                         {.thresholds = fmt::format("evictionHard: {{nodefs.available: '{}%'}}", percent),
                          .kubelet = fmt::format("podLogsDir: {}\n", node.disk.directory("logs").native()),
                          .node = fmt::format("kubeletRoot: {}", node.disk.directory("kubelet").native()),
                          .keep_history = true}};
    agent.wait_for_pods(3);
    testbed::replace_file(node.testbed.directory() / "writer/go", "");

    // How long the writing takes is the machine's affair.
    agent.events().wait_for("the threshold is crossed", 60s,
                            [](const Event& event) { return event.kind() == Event::THRESHOLD_CROSSED; });
    const auto intended = agent.events().wait_for(Event::EVICTION_INTENDED, "default/writer", integration::soon);
    CHECK(intended.signal() == "nodefs.available");
    agent.events().wait_for(Event::CONTAINERS_KILLED, "default/writer", integration::soon);
    agent.events().wait_for(Event::CLEANUP_DONE, "default/writer", 60s);
    const auto passes = agent.status().passes();
    testbed::wait_until("some passes later", 60s, [&] { return agent.status().passes() > passes + 3; });
    for (const auto& event : integration::history(agent))
      if (event.kind() == Event::EVICTION_INTENDED) CHECK(testbed::key(event.pod()) == "default/writer");
    CHECK(node.testbed.cri().is_running(sleeper));
    CHECK(node.testbed.cri().is_running(other));
  }
}

}  // namespace integration::disk_writer_test
