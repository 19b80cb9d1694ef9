#pragma once
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "testbed/files.hpp"
#include "testbed/testbed.hpp"

// Pods to be evicted, and those beside them.

namespace integration {

inline constexpr std::int64_t mebi = 1 << 20;
inline const auto gibi_node = testbed::Testbed::Options{.node = {.memory_limit = 1024 * mebi}};

inline testbed::PodSpec pod(std::string name, evictd::core::QosClass qos, std::vector<std::string> load,
                            std::optional<int> priority = {}) {
  return {.name = std::move(name), .qos = qos, .priority = priority, .containers = {{.args = std::move(load)}}};
}

/// A pod whose memory follows a number written to a file.
struct Follower {
  std::filesystem::path directory;
  testbed::RunningPod running;

  /// `load`: see load.cpp. `annotations`: of the pod.
  Follower(testbed::Testbed& testbed, const std::string& name, std::int64_t begin = 8 * mebi,
           std::vector<std::string> load = {"follow", "/control/size"},
           std::map<std::string, std::string> annotations = {})
      : directory{testbed.directory() / name} {
    std::filesystem::create_directory(directory);
    hold(begin);
    auto spec = pod(name, evictd::core::QosClass::BestEffort, std::move(load));
    spec.containers[0].mounts.push_back({.host_path = directory, .container_path = "/control"});
    spec.annotations = std::move(annotations);
    running = testbed.cri().run_pod(spec);
  }
  void hold(std::int64_t bytes) const { testbed::replace_file(directory / "size", std::to_string(bytes)); }
};

inline bool has_processes(testbed::Testbed& testbed, const testbed::RunningPod& pod) {
  return !testbed.node().processes(pod.cgroup).empty();
}

/// Neither containers nor a sandbox, and no process.
inline bool nothing_left(testbed::Testbed& testbed, const testbed::RunningPod& gone) {
  const auto containers = testbed.cri().containers();
  const bool container_runs = std::ranges::any_of(containers, [&](const auto& container) {
    return container.pod_sandbox_id() == gone.sandbox && container.state() == runtime::v1::CONTAINER_RUNNING;
  });
  const auto sandboxes = testbed.cri().sandboxes();
  const bool sandbox_ready = std::ranges::any_of(sandboxes, [&](const auto& sandbox) {
    return sandbox.id() == gone.sandbox && sandbox.state() == runtime::v1::SANDBOX_READY;
  });
  return !container_runs && !sandbox_ready && !has_processes(testbed, gone);
}

}  // namespace integration
