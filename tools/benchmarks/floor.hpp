#pragma once
#include <fmt/format.h>
#include <sys/eventfd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <thread>
#include <vector>

#include "benchmarks/observer.hpp"
#include "os/file_descriptor.hpp"
#include "testbed/cgroup_host.hpp"
#include "testbed/failure.hpp"
#include "testbed/files.hpp"

namespace bench {

/// As little as it takes: a thread waits on an eventfd for the node's usage to pass a level, reads the pod's
/// cgroup.procs and kills every process there. It knows whom to kill, asks no runtime and cleans nothing up. Nothing
/// that also decides can be quicker, so it is what evictd's times are compared with. cgroup v2 has no such eventfd:
/// there it reads the usage again and again, and so keeps a processor busy.
class Floor {
 public:
  /// `level`: of the node's usage, bytes. Waits from now on, for a single eviction.
  Floor(const std::filesystem::path& node, const std::filesystem::path& pod, std::int64_t level)
      : pod_{pod}, level_{level}, usage_{open_counter(node, usage_file())}, event_{::eventfd(0, EFD_CLOEXEC)} {
    if (event_.get() < 0) testbed::fail_errno("eventfd");
    for (const auto& container : std::filesystem::directory_iterator(pod))
      if (container.is_directory()) processes_.push_back(open_counter(container.path(), "cgroup.procs"));
    if (!testbed::cgroup_host().v2)
      testbed::write_file(node / "cgroup.event_control", fmt::format("{} {} {}", event_.get(), usage_.get(), level));
    thread_ = std::thread([this] { run(); });
  }
  ~Floor() {
    stopping_ = true;
    ::eventfd_write(event_.get(), 1);
    thread_.join();
  }

  [[nodiscard]] bool done() const { return done_; }
  /// Once done().
  [[nodiscard]] const Stages& stages() const { return stages_; }

 private:
  void run() {
    if (!wait_for_crossing()) return;
    kill_all();
    while (!stopping_ && !testbed::processes_in_cgroup(pod_).empty())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    stages_.cleanup = monotonic_now();
    done_ = true;
  }

  /// The kernel signals in both directions.
  bool wait_for_crossing() {
    const bool is_told = !testbed::cgroup_host().v2;
    for (;;) {
      eventfd_t count = 0;
      if ((is_told && ::eventfd_read(event_.get(), &count) != 0) || stopping_) return false;
      stages_.woken = monotonic_now();
      if (std::atoll(read_counter(usage_).c_str()) >= level_) return true;
    }
  }

  /// On v1 only the first read of an open cgroup.procs is sure to be fresh (the kernel keeps the list for a second).
  void kill_all() {
    std::vector<pid_t> pids;
    for (const auto& file : processes_) {
      std::istringstream lines{read_counter(file)};
      for (pid_t pid = 0; lines >> pid;)
        if (pid > 0) pids.push_back(pid);
    }
    stages_.decided = monotonic_now();
    for (const auto pid : pids) {
      ::kill(pid, SIGKILL);
      if (!stages_.killed) stages_.killed = monotonic_now();
    }
  }

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
