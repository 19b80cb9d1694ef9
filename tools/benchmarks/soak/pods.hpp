#pragma once
#include <atomic>
#include <boost/json/object.hpp>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "benchmarks/soak/dice.hpp"
#include "benchmarks/soak/findings.hpp"
#include "testbed/pod_spec.hpp"
#include "testbed/testbed.hpp"

namespace bench::soak {

/// Pods that are started and removed while containerd comes and goes: in the stead of a kubelet, which asks again. From
/// any thread.
class Keeper {
 public:
  Keeper(testbed::Testbed& testbed, Findings& findings) : testbed_{testbed}, findings_{findings} {}

  /// Nothing: containerd went away meanwhile, and what there was of the pod is removed. Fails with the last reason
  /// where for minutes nobody could start one.
  [[nodiscard]] std::optional<testbed::RunningPod> start(testbed::PodSpec spec);
  /// Returns when neither containerd nor a cgroup knows the pod. That it takes too long is a finding.
  void remove(const testbed::RunningPod& pod);

  [[nodiscard]] int started() const { return started_; }
  [[nodiscard]] boost::json::object figures() const;

 private:
  using Clock = std::chrono::steady_clock;

  void count_failure(Clock::time_point begin, const std::string& reason);
  void clear(const std::string& uid, const std::string& cgroup);
  [[nodiscard]] bool forgotten_by_the_runtime(const std::string& uid);

  testbed::Testbed& testbed_;
  Findings& findings_;
  std::atomic<int> started_ = 0;
  std::atomic<int> removed_ = 0;
  std::atomic<int> broken_off_ = 0;  // starts, by containerd's end
  std::mutex mutex_;
  int failures_ = 0;  // since a pod was started
  Clock::time_point failing_since_{};
};

/// A standing population of small pods, of which one comes or goes every moment. None of them has ever to be evicted.
class Population {
 public:
  Population(Keeper& keeper, std::uint64_t seed, int size);

  /// Until there are `size` of them again.
  void fill();
  /// By `size` pods of one lasting container each: what evictd holds of them is the same each time.
  void replace_all();
  /// One comes or one goes, again and again.
  void change(const std::stop_token& stop);
  void remove_all();

 private:
  [[nodiscard]] testbed::PodSpec next_pod();
  [[nodiscard]] testbed::PodSpec even_pod();
  void add(testbed::PodSpec spec);
  void remove_one();

  Keeper& keeper_;
  Dice dice_;
  std::size_t size_;
  int number_ = 0;
  std::vector<testbed::RunningPod> pods_;
};

/// Ends containerd and starts it again, pods running on meanwhile.
class Restarts {
 public:
  Restarts(testbed::Testbed& testbed, std::uint64_t seed) : testbed_{testbed}, dice_{seed, "containerd"} {}

  void once(bool kill, std::chrono::milliseconds away);
  void run(const std::stop_token& stop);

  [[nodiscard]] boost::json::object figures() const { return {{"killed", kills_}, {"stopped", stops_}}; }

 private:
  testbed::Testbed& testbed_;
  Dice dice_;
  int kills_ = 0;
  int stops_ = 0;
};

}  // namespace bench::soak
