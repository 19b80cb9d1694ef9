#include "benchmarks/floor.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <sstream>

#include "testbed/cgroup_host.hpp"
#include "testbed/failure.hpp"
#include "testbed/files.hpp"

namespace bench {

namespace fs = std::filesystem;

Floor::Floor(const fs::path& node, const fs::path& pod, std::int64_t level)
    : pod_{pod}, level_{level}, usage_{open_counter(node, usage_file())}, event_{::eventfd(0, EFD_CLOEXEC)} {
  if (event_.get() < 0) testbed::fail_errno("eventfd");
  for (const auto& container : fs::directory_iterator(pod))
    if (container.is_directory()) processes_.push_back(open_counter(container.path(), "cgroup.procs"));
  if (!testbed::cgroup_host().v2)
    testbed::write_file(node / "cgroup.event_control", fmt::format("{} {} {}", event_.get(), usage_.get(), level));
  thread_ = std::thread([this] { run(); });
}

Floor::~Floor() {
  stopping_ = true;
  ::eventfd_write(event_.get(), 1);
  thread_.join();
}

void Floor::run() {
  if (!wait_for_crossing()) return;
  kill_all();
  while (!stopping_ && !testbed::processes_in_cgroup(pod_).empty())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  stages_.cleanup = monotonic_now();
  done_ = true;
}

/// The kernel signals in both directions.
bool Floor::wait_for_crossing() {
  const bool is_told = !testbed::cgroup_host().v2;
  for (;;) {
    eventfd_t count = 0;
    if ((is_told && ::eventfd_read(event_.get(), &count) != 0) || stopping_) return false;
    stages_.woken = monotonic_now();
    if (std::atoll(read_counter(usage_).c_str()) >= level_) return true;
  }
}

/// On v1 only the first read of an open cgroup.procs is sure to be fresh (the kernel keeps the list for a second).
void Floor::kill_all() {
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

}  // namespace bench
