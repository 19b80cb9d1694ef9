#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "benchmarks/scene.hpp"
#include "benchmarks/soak/crossings.hpp"
#include "benchmarks/soak/dice.hpp"
#include "benchmarks/soak/evictions.hpp"
#include "benchmarks/soak/findings.hpp"
#include "benchmarks/soak/pods.hpp"
#include "core/pod.hpp"
#include "testbed/agent.hpp"
#include "testbed/files.hpp"
#include "testbed/pod_spec.hpp"
#include "testbed/testbed.hpp"
#include "testbed/wait.hpp"

namespace bench::soak {

using namespace std::chrono_literals;

/// Pods that take the node's memory, one act after the other. Each act waits until the agent knows its pods: what it
/// does not know, it cannot evict.
class Hogs {
 public:
  struct Parts {
    testbed::Testbed& testbed;
    const testbed::Agent& agent;
    Keeper& keeper;
    const Crossings& crossings;
    const Evictions& evictions;
    Findings& findings;
  };

  Hogs(Parts parts, std::uint64_t seed) : parts_{parts}, dice_{seed, "hogs"} {}

  /// Finishes the act it is in.
  void run(const std::stop_token& stop) {
    while (pause(stop, dice_.between(200ms, 7000ms))) {
      const auto act = dice_.between(1, 20);
      if (act <= 10)
        cross(1);
      else if (act <= 13)
        cross(2);
      else if (act <= 16)
        come_near();
      else
        cross_briefly();
    }
  }
  /// So many at the same time that cross and must go.
  void cross(int count) {
    std::vector<Hog> hogs;
    for (int i = 0; i < count; ++i) hogs.push_back(make("hog"));
    grow(hogs, size_for(dice_.between(60, 200) * mebi));
    wait_until_gone(hogs);
    parts_.findings.happened("crossings", count == 1 ? "alone" : "pairs");
    parts_.findings.happened("crossings", "hadToBeAnswered", count);
    for (const auto& hog : hogs) parts_.keeper.remove(hog.pod);
  }
  /// Of each hog that had to go, from when its last growth was asked for until none of its processes was left.
  [[nodiscard]] const std::vector<double>& dead_ms() const { return dead_ms_; }

 private:
  using Clock = std::chrono::steady_clock;

  static constexpr std::int64_t begin_size = 8 * mebi;
  // For a pod's death; evictd takes milliseconds, a busy machine takes what it likes.
  static constexpr auto answer_bound = 30s;
  static constexpr auto cleanup_bound = 90s;  // evictd's own is 30 s, after which it says what is left

  /// A pod whose memory follows a number in a file.
  struct Hog {
    std::filesystem::path file;
    testbed::RunningPod pod;
    void hold(std::int64_t bytes) const { testbed::replace_file(file, std::to_string(bytes)); }
  };

  void come_near() {
    const auto hog = make("near");
    grow({hog}, size_for(-100 * mebi));
    std::this_thread::sleep_for(dice_.between(500ms, 3000ms));
    hog.hold(begin_size);
    std::this_thread::sleep_for(500ms);
    parts_.findings.happened("crossings", "near");
    parts_.keeper.remove(hog.pod);
  }
  void cross_briefly() {
    const auto hog = make("brief");
    grow({hog}, size_for(dice_.between(40, 100) * mebi));
    const auto end = Clock::now() + testbed::patient(answer_bound);
    while (parts_.crossings.working_set() <= parts_.crossings.level() && has_processes(hog) && Clock::now() < end)
      std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(dice_.between(0ms, 30ms));
    hog.hold(begin_size);
    std::this_thread::sleep_for(testbed::patient(1500ms));  // whoever is to go has been chosen by then
    parts_.findings.happened("crossings", "brief");
    if (!has_processes(hog) || parts_.evictions.of(hog.pod.uid)) {
      parts_.findings.happened("crossings", "briefEvicted");
      if (!wait_for_cleanup(hog))
        parts_.findings.add(fmt::format("{} is dead, and its eviction was not told or did not end", hog.pod.name));
    }
    parts_.keeper.remove(hog.pod);
  }
  [[nodiscard]] Hog make(const char* kind) {
    const auto name = fmt::format("{}-{}", kind, ++number_);
    const auto directory = parts_.testbed.directory() / name;
    std::filesystem::create_directory(directory);
    Hog hog{.file = directory / "size", .pod = {}};
    hog.hold(begin_size);
    testbed::PodSpec spec{
        .name = name, .qos = evictd::core::QosClass::BestEffort, .containers = {{.args = {"follow", "/control/size"}}}};
    spec.containers[0].mounts.push_back({.host_path = directory, .container_path = "/control"});
    for (;;) {
      if (auto pod = parts_.keeper.start(spec)) {
        hog.pod = *std::move(pod);
        break;
      }
    }
    if (!testbed::comes_true(2min, [&] { return parts_.agent.is_listed(hog.pod.uid); }))
      parts_.findings.add(fmt::format("evictd has not heard of the pod {} for 2 min", name));
    return hog;
  }
  /// In one leap or in a few steps, all of them side by side.
  void grow(const std::vector<Hog>& hogs, std::int64_t bytes) {
    const auto steps = dice_.between(1, 5);
    for (std::int64_t step = 1; step <= steps; ++step) {
      for (const auto& hog : hogs) hog.hold(begin_size + (bytes - begin_size) * step / steps);
      if (step < steps) std::this_thread::sleep_for(dice_.between(0ms, 200ms));
    }
  }
  void wait_until_gone(const std::vector<Hog>& hogs) {
    const auto begin = Clock::now();
    std::vector<bool> dead(hogs.size());
    const auto look = [&] {
      for (std::size_t i = 0; i < hogs.size(); ++i) {
        if (dead[i] || has_processes(hogs[i])) continue;
        dead[i] = true;
        dead_ms_.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
      }
      return std::ranges::find(dead, false) == dead.end();
    };
    std::ignore = testbed::comes_true(answer_bound, look);  // each is looked at below
    for (std::size_t i = 0; i < hogs.size(); ++i) {
      if (dead[i] && wait_for_cleanup(hogs[i])) {
        parts_.findings.happened("crossings", "answered");
        continue;
      }
      parts_.findings.add(fmt::format("a crossing was not answered: {} {} (working set {} MiB, level {} MiB)",
                                      hogs[i].pod.name, dead[i] ? "is dead and its eviction did not end" : "lives on",
                                      parts_.crossings.working_set() / mebi, parts_.crossings.level() / mebi));
    }
  }
  [[nodiscard]] bool has_processes(const Hog& hog) const {
    return !parts_.testbed.node().processes(hog.pod.cgroup).empty();
  }
  [[nodiscard]] bool wait_for_cleanup(const Hog& hog) const {
    return testbed::comes_true(cleanup_bound, [&] {
      const auto eviction = parts_.evictions.of(hog.pod.uid);
      return eviction && eviction->cleaned > 0;
    });
  }
  /// What a pod has to hold for the node to stand so far beyond the level.
  [[nodiscard]] std::int64_t size_for(std::int64_t beyond) const {
    return parts_.crossings.level() + beyond - parts_.crossings.working_set() + begin_size;
  }

  Parts parts_;
  Dice dice_;
  int number_ = 0;
  std::vector<double> dead_ms_{};
};

}  // namespace bench::soak
