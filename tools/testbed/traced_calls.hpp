#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "os/file_descriptor.hpp"

namespace testbed {

/// One system call.
struct TracedCall {
  std::uint64_t number = 0;
  std::int64_t result = 0;
  std::string file{};  ///< of read(2), what its descriptor was of: "anon_inode:[eventfd]"
  /// When the thread stopped for it, and when it went on after it: between two calls lies what the thread does itself,
  /// and some microseconds that stopping it takes.
  std::chrono::steady_clock::time_point begin{};
  std::chrono::steady_clock::time_point end{};
  /// What the thread had executed by itself until then, outside of the kernel, since the trace began. Absent where the
  /// machine counts none (perf_event_open(2)), as most virtual ones.
  std::optional<std::uint64_t> instructions{};
};

/// The system calls of a process's first thread from now on, in their order (ptrace(2)). The process is killed with
/// this object, or has ended before.
class TracedCalls {
 public:
  /// Returns once the thread is traced.
  explicit TracedCalls(pid_t process);
  TracedCalls(const TracedCalls&) = delete;
  TracedCalls& operator=(const TracedCalls&) = delete;
  ~TracedCalls();

  [[nodiscard]] std::vector<TracedCall> all() const;

 private:
  void trace();
  bool step(int signal);

  pid_t process_;
  evictd::os::FileDescriptor instructions_;
  mutable std::mutex mutex_;
  std::vector<TracedCall> calls_;
  bool traced_ = false;
  std::thread thread_;
};

}  // namespace testbed
