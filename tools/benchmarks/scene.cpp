#include "benchmarks/scene.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "benchmarks/observer.hpp"
#include "core/pod.hpp"
#include "testbed/failure.hpp"
#include "testbed/files.hpp"
#include "testbed/pod_spec.hpp"
#include "testbed/wait.hpp"

namespace bench {

using namespace std::chrono_literals;
using evictd::core::QosClass;

Scene::Scene(std::int64_t threshold) : testbed_{{.node = {.memory_limit = node_memory}}}, threshold_{threshold} {
  for (const char* name : {"calm-a", "calm-b", "calm-c"})
    calm_.push_back(testbed_.cri().run_pod({.name = name,
                                            .qos = QosClass::Burstable,
                                            .containers = {{.args = {"hold", "16Mi"}, .memory_request = 64 * mebi}}}));
}

RunDirectory::RunDirectory(const testbed::Testbed& testbed) : path{"/dev/shm" / testbed.directory().filename()} {
  std::filesystem::create_directory(path);
}

RunDirectory::~RunDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

std::string Scene::thresholds() const {
  return fmt::format("evictionHard: {{memory.available: {}Mi}}", threshold_ / mebi);
}

std::int64_t Scene::level() {
  const auto stat = testbed::read_file(testbed_.node().memory_directory() / "memory.stat");
  return node_memory - threshold_ + inactive_file(stat);
}

bool Scene::calm_pods_run() {
  return std::ranges::all_of(calm_, [this](const auto& pod) { return testbed_.cri().is_running(pod); });
}

void Scene::wait_until_calm() {
  testbed::wait_until("the node's memory is back", 60s, [&] { return testbed_.node().memory_usage() < 128 * mebi; });
}

Victim::Victim(Scene& scene, const std::string& name, std::vector<std::string> load, std::string_view text)
    : scene_{scene}, directory_{scene.testbed().directory() / name} {
  std::filesystem::create_directory(directory_);
  if (!text.empty()) tell(text);
  std::ranges::replace(load, "FILE", "/control/word");
  testbed::PodSpec spec{.name = name, .qos = QosClass::BestEffort, .containers = {{.args = std::move(load)}}};
  spec.containers[0].mounts.push_back({.host_path = directory_, .container_path = "/control"});
  pod_ = scene.testbed().cri().run_pod(spec);
}

Victim::~Victim() {
  testbed::report_failure([&] { scene_.testbed().cri().remove(pod_); });
}

void Victim::tell(std::string_view text) const { testbed::replace_file(directory_ / "word", text); }

std::filesystem::path Victim::cgroup() const { return scene_.testbed().node().memory_directory(pod_.cgroup); }

Stages stages_of(const evictd::v1::Event& cleanup) {
  const auto at = [&](const char* name) -> std::optional<Nanoseconds> {
    const auto stage = cleanup.stages().find(name);
    if (stage == cleanup.stages().end()) return std::nullopt;
    return cleanup.wake().monotonic_ns() + stage->second * 1000;
  };
  return {.woken = cleanup.wake().monotonic_ns(),
          .decided = at("decided"),
          .killed = at("killed"),
          .cleanup = at("cleanup")};
}

void progress(std::string_view text) { fmt::print(stderr, "{}\n", text); }

}  // namespace bench
