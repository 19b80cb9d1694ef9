#pragma once
#include <sys/types.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace integration {

/// One system call.
struct TracedCall {
  std::uint64_t number = 0;
  std::int64_t result = 0;
  std::string file{};  ///< of read(2), what its descriptor was of: "anon_inode:[eventfd]"
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
  mutable std::mutex mutex_;
  std::vector<TracedCall> calls_;
  bool traced_ = false;
  std::thread thread_;
};

}  // namespace integration
