#include "benchmarks/scene.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <system_error>
#include <utility>

#include "core/pod.hpp"
#include "testbed/cgroup_host.hpp"
#include "testbed/failure.hpp"
#include "testbed/files.hpp"
#include "testbed/wait.hpp"

namespace bench {

using namespace std::chrono_literals;
using evictd::core::QosClass;

namespace {

/// As the command line has them, in the order of Variant.
constexpr std::array<std::string_view, 8> short_names{"fast",  "cri",  "timer",      "sampler",
                                                      "fence", "hook", "hook-hangs", "floor"};

/// Whether cgroup v1 knows no such difference.
bool is_of_v2(Variant variant) { return variant == Variant::sampler || variant == Variant::fence; }

}  // namespace

std::string name(Variant variant) {
  const auto short_name = std::string(short_names.at(static_cast<std::size_t>(variant)));
  return variant == Variant::floor ? short_name : "evictd " + short_name;
}

std::vector<Variant> variants_named(const std::vector<std::string>& names) {
  std::vector<Variant> variants;
  for (const auto& name : names)
    variants.push_back(static_cast<Variant>(std::ranges::find(short_names, name) - short_names.begin()));
  if (!testbed::cgroup_host().v2 && std::ranges::any_of(variants, is_of_v2))
    testbed::fail("sampler and fence are cgroup v2's, and this machine has its memory on v1: see tools/vm/run");
  return variants;
}

testbed::Agent::Options agent_options(Variant variant, std::string thresholds) {
  testbed::Agent::Options options{.thresholds = std::move(thresholds)};
  options.sections = variant == Variant::cri ? "kill: {mode: cri}\n" : "kill: {mode: fast}\n";
  if (variant == Variant::timer) options.notifier = "disable: [memcg, oom, files, sampler, psi], v2: sampler";
  if (is_of_v2(variant)) options.notifier = fmt::format("v2: {}", short_names.at(static_cast<std::size_t>(variant)));
  return options;
}

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

std::int64_t Scene::level() { return node_memory - threshold_ + testbed_.node().memory_stat("inactive_file"); }

bool Scene::calm_pods_run() {
  return std::ranges::all_of(calm_, [this](const auto& pod) { return testbed_.cri().is_running(pod); });
}

void Scene::wait_until_calm() {
  testbed::wait_until("the node's memory is back", 60s, [&] { return testbed_.node().memory_usage() < 128 * mebi; });
}

std::vector<double> Scene::left_mib(const Observer& observer) {
  const auto most = std::ranges::max(observer.samples(), {}, &Sample::node).node;
  // For a moment the kernel charges a little more than the limit.
  return {static_cast<double>(std::max<std::int64_t>(node_memory - most, 0)) / mebi};
}

OwnPod::OwnPod(testbed::Testbed& testbed, testbed::PodSpec spec, std::string_view told)
    : testbed_{testbed}, directory_{testbed.directory() / spec.name} {
  std::filesystem::create_directory(directory_);
  if (!told.empty()) tell(told);
  spec.containers[0].mounts.push_back({.host_path = directory_, .container_path = mount});
  pod_ = testbed.cri().run_pod(spec);
}

OwnPod::OwnPod(testbed::Testbed& testbed, testbed::RunningPod pod, std::filesystem::path directory)
    : testbed_{testbed}, directory_{std::move(directory)}, pod_{std::move(pod)} {}

/// Its files as well: the node would go on holding them in its cache.
OwnPod::~OwnPod() {
  testbed::report_failure([&] {
    testbed_.cri().remove(pod_);
    std::filesystem::remove_all(directory_);
  });
}

void OwnPod::tell(std::string_view text) const { testbed::replace_file(directory_ / "word", text); }

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

double milliseconds(const google::protobuf::Duration& time) {
  return static_cast<double>(time.seconds()) * 1e3 + static_cast<double>(time.nanos()) / 1e6;
}

}  // namespace bench
