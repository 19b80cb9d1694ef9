#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/runtime_stand_in.hpp"
#include "testbed/testbed.hpp"

namespace bench {

/// Many pods for little: each is a pair of real cgroups, the pod's and its container's, for memory and for pids, with
/// one small process inside that holds a MiB, and an entry in the runtime's stand-in. They go with the testbed.
class Crowd {
 public:
  /// What its node is given: further from the threshold at rest than evictd takes for near (wake/approach_timer.hpp).
  /// And what a victim grows to: beyond the threshold, and not to the limit.
  static constexpr std::int64_t free_memory = std::int64_t{800} << 20;
  static constexpr std::string_view thresholds = "evictionHard: {memory.available: 300Mi}";
  static constexpr std::string_view growth = "650Mi";

  /// `testbed`: without a containerd, in whose place the stand-in answers.
  Crowd(testbed::Testbed& testbed, std::size_t pods);

  /// One more, which holds what the file says; see follow in load.cpp. Returns when its process runs.
  void add_victim(const std::string& name, const std::filesystem::path& file);
  /// Of an evicted one: the runtime forgets it, and its cgroups are removed.
  void remove(const std::string& name);
  /// Has the pods listed, by an event of one that is not there: the list says what the one before has said.
  void have_listed() { runtime_.remove(""); }
  /// Leaves the node this much, in bytes, beyond what is used now.
  void leave_free(std::int64_t bytes);

 private:
  /// Its cgroups; nothing runs there yet. The runtime does not know it yet either.
  RuntimeStandIn::Pod make(const std::string& name);
  /// Of its container, in the memory and in the pids hierarchy: one and the same on v2.
  [[nodiscard]] std::array<std::filesystem::path, 2> container(const std::string& name) const;
  /// Starts `load` with the arguments in each container, from a shell that has gone there itself: memory is charged to
  /// where a process is when it first touches it.
  void start(const std::vector<RuntimeStandIn::Pod>& pods, const std::string& arguments);

  testbed::Testbed& testbed_;
  RuntimeStandIn runtime_;
};

}  // namespace bench
