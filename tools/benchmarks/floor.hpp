#pragma once
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <thread>
#include <vector>

#include "benchmarks/observer.hpp"
#include "os/file_descriptor.hpp"

namespace bench {

/// As little as it takes: a thread waits on an eventfd for the node's usage to pass a level, reads the pod's
/// cgroup.procs and kills every process there. It knows whom to kill, asks no runtime and cleans nothing up. Nothing
/// that also decides can be quicker, so it is what evictd's times are compared with. cgroup v2 has no such eventfd:
/// there it reads the usage again and again, and so keeps a processor busy.
class Floor {
 public:
  /// `level`: of the node's usage, bytes. Waits from now on, for a single eviction.
  Floor(const std::filesystem::path& node, const std::filesystem::path& pod, std::int64_t level);
  ~Floor();

  [[nodiscard]] bool done() const { return done_; }
  /// Once done().
  [[nodiscard]] const Stages& stages() const { return stages_; }

 private:
  void run();
  [[nodiscard]] bool wait_for_crossing();
  void kill_all();

  std::filesystem::path pod_;
  std::int64_t level_;
  evictd::os::FileDescriptor usage_;
  evictd::os::FileDescriptor event_;                   // v1
  std::vector<evictd::os::FileDescriptor> processes_;  // cgroup.procs of each of the pod's containers
  Stages stages_;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

}  // namespace bench
