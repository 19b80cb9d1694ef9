#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "cri/fake_runtime.hpp"
#include "testbed/agent.hpp"
#include "testbed/testbed.hpp"

namespace bench {

/// Many pods for little: each is a pair of real cgroups, the pod's and its container's, for memory and for pids, with
/// one small process inside that holds a MiB, and an entry in the unit tests' runtime, which kills nobody. They go with
/// the testbed. A real containerd needs minutes and gigabytes for a thousand pods, and the benches ask what evictd
/// costs, not what containerd does; what this one cannot show is how long a real runtime takes. As containerd does from
/// 1.7 on it tells of pods that come, stop and go, so evictd lists them once a minute.
class Crowd {
 public:
  /// What its node is given: further from the threshold at rest than evictd takes for near (wake/approach_timer.hpp).
  /// And what a victim grows to: beyond the threshold, and not to the limit.
  static constexpr std::int64_t free_memory = std::int64_t{800} << 20;
  static constexpr std::string_view thresholds = "evictionHard: {memory.available: 300Mi}";
  static constexpr std::string_view growth = "650Mi";

  /// `testbed`: without a containerd, in whose place the stand-in answers.
  Crowd(testbed::Testbed& testbed, std::size_t pods);
  Crowd(const Crowd&) = delete;

  class Victim;

  /// Has the pods listed, by an event of one that is not there: the list says what the one before has said.
  void have_listed() { runtime_.tell(1, ""); }
  /// Leaves the node this much, in bytes, beyond what is used now.
  void leave_free(std::int64_t bytes);
  [[nodiscard]] std::int64_t node_memory() const { return node_memory_; }

 private:
  [[nodiscard]] std::string cgroup(const std::string& name) const;
  /// Of its container, in the memory and in the pids hierarchy: one and the same on v2.
  [[nodiscard]] std::array<std::filesystem::path, 2> container(const std::string& name) const;
  /// Makes their cgroups, and starts `load` with the arguments in each container, from a shell that has gone there
  /// itself: memory is charged to where a process is when it first touches it. Then the runtime knows them.
  void start(const std::vector<std::string>& names, const std::string& arguments);

  testbed::Testbed& testbed_;
  evictd::test::FakeRuntime runtime_;
  std::size_t pods_;
  std::int64_t node_memory_ = 0;  // what leave_free() gave it
  int victims_ = 0;               // so far
};

/// One more pod, which is to be evicted: it holds 8 MiB until it grows.
class Crowd::Victim {
 public:
  /// Returns when its process runs.
  explicit Victim(Crowd& crowd);
  /// As leave(), but a failure is only told, and the agent is not asked.
  ~Victim();
  Victim(const Victim&) = delete;

  /// Until the agent knows it beside the crowd, and what its start stirred up is over.
  void wait_until_known(const testbed::Agent& agent) const;
  /// Has it grow; the event of its end.
  testbed::Event grow(testbed::Agent& agent, std::string_view size = growth) const;
  /// It was evicted: the runtime forgets it, its cgroups are removed, and the agent knows the crowd alone. Throws where
  /// that does not come about.
  void leave(const testbed::Agent& agent);
  [[nodiscard]] std::string key() const { return "default/" + name_; }
  /// In the memory hierarchy.
  [[nodiscard]] std::filesystem::path cgroup() const { return crowd_.container(name_)[0].parent_path(); }

 private:
  void remove();

  Crowd& crowd_;
  std::string name_;
  std::filesystem::path size_;  // a file: see follow in load.cpp
  bool is_there_ = true;
};

}  // namespace bench
