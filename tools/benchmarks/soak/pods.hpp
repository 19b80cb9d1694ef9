#pragma once
#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "benchmarks/scene.hpp"
#include "benchmarks/soak/dice.hpp"
#include "benchmarks/soak/findings.hpp"
#include "core/pod.hpp"
#include "testbed/cgroup_host.hpp"
#include "testbed/cri.hpp"
#include "testbed/failure.hpp"
#include "testbed/pod_spec.hpp"
#include "testbed/testbed.hpp"
#include "testbed/wait.hpp"

namespace bench::soak {

using namespace std::chrono_literals;
using evictd::core::QosClass;

/// Pods that are started and removed while containerd comes and goes: in the stead of a kubelet, which asks again. From
/// any thread.
class Keeper {
 public:
  Keeper(testbed::Testbed& testbed, Findings& findings) : testbed_{testbed}, findings_{findings} {}

  /// Nothing: containerd went away meanwhile, and what there was of the pod is removed. Fails with the last reason
  /// where for minutes nobody could start one.
  [[nodiscard]] std::optional<testbed::RunningPod> start(testbed::PodSpec spec) {
    spec.uid = testbed::random_uid();
    const auto begin = Clock::now();
    try {
      auto pod = testbed_.cri().run_pod(spec);
      findings_.happened("pods", "started");
      const std::lock_guard lock{mutex_};
      failures_ = 0;
      return pod;
    } catch (const testbed::Failure& failure) {
      findings_.happened("pods", "startsBrokenOff");
      clear(spec.uid, testbed_.node().pod_cgroup(spec.qos, spec.uid));
      count_failure(begin, failure.what());
      return std::nullopt;
    }
  }
  /// Returns when neither containerd nor a cgroup knows the pod. That it takes too long is a finding.
  void remove(const testbed::RunningPod& pod) {
    clear(pod.uid, pod.cgroup);
    findings_.happened("pods", "removed");
  }

 private:
  using Clock = std::chrono::steady_clock;

  static constexpr auto long_enough_to_remove = 3min;
  // containerd is away for seconds at a time; what lasts longer is no restart of it.
  static constexpr auto long_enough_to_start = 2min;
  static constexpr int failures_in_a_row = 3;

  void count_failure(Clock::time_point begin, const std::string& reason) {
    const std::lock_guard lock{mutex_};
    if (failures_++ == 0) failing_since_ = begin;
    const auto time = Clock::now() - failing_since_;
    if (failures_ >= failures_in_a_row && time >= testbed::patient(long_enough_to_start))
      testbed::fail(fmt::format("no pod could be started for {} s, {} times in a row: {}",
                                std::chrono::floor<std::chrono::seconds>(time).count(), failures_, reason));
  }
  /// Again and again until neither containerd nor a cgroup knows the pod.
  void clear(const std::string& uid, const std::string& cgroup) {
    std::string last_word;
    const bool gone = testbed::comes_true(long_enough_to_remove, [&] {
      try {
        if (forgotten_by_the_runtime(uid)) {
          // What a start that was broken off left running in there is nobody's.
          testbed::remove_cgroups(cgroup.substr(1));
          return true;
        }
      } catch (const testbed::Failure& failure) {
        last_word = failure.what();  // containerd is away
      }
      std::this_thread::sleep_for(20ms);
      return false;
    });
    if (!gone) findings_.add(fmt::format("the pod {} cannot be removed: {}", uid, last_word));
  }
  /// Asks for the removal of each of its sandboxes, and then whether there is none left.
  [[nodiscard]] bool forgotten_by_the_runtime(const std::string& uid) {
    const auto sandboxes_of = [&] {
      runtime::v1::ListPodSandboxRequest request;
      (*request.mutable_filter()->mutable_label_selector())["io.kubernetes.pod.uid"] = uid;
      return testbed_.cri().calls().ask<runtime::v1::ListPodSandboxResponse>(request);
    };
    const auto left = sandboxes_of();
    for (const auto& sandbox : left.items())
      testbed_.cri().remove({.name = {}, .name_space = {}, .uid = uid, .sandbox = sandbox.id()});
    return sandboxes_of().items().empty();
  }

  testbed::Testbed& testbed_;
  Findings& findings_;
  std::mutex mutex_;
  int failures_ = 0;  // since a pod was started
  Clock::time_point failing_since_{};
};

/// A standing population of small pods, of which one comes or goes every moment. None of them has ever to be evicted.
class Population {
 public:
  Population(Keeper& keeper, std::uint64_t seed, int size)
      : keeper_{keeper}, dice_{seed, "population"}, size_{static_cast<std::size_t>(size)} {}

  /// Until there are `size` of them again.
  void fill() {
    while (pods_.size() > size_) remove_one();
    while (pods_.size() < size_) add(next_pod());
  }
  /// By `size` pods of one lasting container each: what evictd holds of them is the same each time.
  void replace_all() {
    remove_all();
    while (pods_.size() < size_) add(even_pod());
  }
  /// One comes or one goes, again and again.
  void change(const std::stop_token& stop) {
    const auto spread = size_ / 5;
    while (pause(stop, dice_.between(0ms, 1200ms))) {
      const bool more = dice_.percent(50);
      if (pods_.size() <= size_ - spread || (more && pods_.size() < size_ + spread))
        add(next_pod());
      else
        remove_one();
    }
  }
  void remove_all() {
    while (!pods_.empty()) remove_one();
  }

 private:
  /// Pods of every class; some have two containers, some end by themselves. None of them has a lower priority than a
  /// hog.
  [[nodiscard]] testbed::PodSpec next_pod() {
    testbed::PodSpec spec{.name = fmt::format("pod-{}", ++number_)};
    const auto kind = dice_.between(1, 10);
    spec.qos = kind <= 4 ? QosClass::BestEffort : kind <= 8 ? QosClass::Burstable : QosClass::Guaranteed;
    if (dice_.percent(20)) spec.priority = static_cast<int>(dice_.between(0, 1000));
    if (dice_.percent(10)) spec.priority = 2'000'000'000;
    const int containers = dice_.percent(20) ? 2 : 1;
    for (int i = 0; i < containers; ++i) {
      testbed::ContainerSpec container{.name = fmt::format("c{}", i)};
      if (dice_.percent(15))
        container.command = {"sh", "-c", fmt::format("sleep {}", dice_.between(1, 20))};
      else
        container.args = {"hold", fmt::format("{}Mi", dice_.between(1, 6))};
      if (spec.qos != QosClass::BestEffort) container.memory_request = 32 * mebi;
      if (spec.qos == QosClass::Guaranteed) container.memory_limit = 32 * mebi;
      spec.containers.push_back(std::move(container));
    }
    return spec;
  }
  [[nodiscard]] testbed::PodSpec even_pod() {
    return {.name = fmt::format("pod-{}", ++number_), .containers = {{.name = "c0", .args = {"hold", "2Mi"}}}};
  }
  void add(testbed::PodSpec spec) {
    if (auto pod = keeper_.start(std::move(spec))) pods_.push_back(*std::move(pod));
  }
  void remove_one() {
    const auto chosen = dice_.between(0, static_cast<std::int64_t>(pods_.size()) - 1);
    std::swap(pods_[static_cast<std::size_t>(chosen)], pods_.back());
    const auto pod = std::move(pods_.back());
    pods_.pop_back();
    keeper_.remove(pod);
  }

  Keeper& keeper_;
  Dice dice_;
  std::size_t size_;
  int number_ = 0;
  std::vector<testbed::RunningPod> pods_;
};

/// Ends containerd and starts it again, pods running on meanwhile.
class Restarts {
 public:
  Restarts(testbed::Testbed& testbed, Findings& findings, std::uint64_t seed)
      : testbed_{testbed}, findings_{findings}, dice_{seed, "containerd"} {}

  void once(bool kill, std::chrono::milliseconds away) {
    if (kill)
      testbed_.containerd().kill9();
    else
      testbed_.containerd().stop();
    findings_.happened("containerd", kill ? "killed" : "stopped");
    std::this_thread::sleep_for(away);
    testbed_.containerd().start();
  }
  void run(const std::stop_token& stop) {
    while (pause(stop, dice_.between(10s, 40s))) {
      const bool kill = dice_.percent(80);
      once(kill, dice_.between(0ms, 3000ms));
    }
  }

 private:
  testbed::Testbed& testbed_;
  Findings& findings_;
  Dice dice_;
};

}  // namespace bench::soak
