#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

namespace bench {

/// What a process has used since its start.
struct ProcessCost {
  std::chrono::nanoseconds cpu{};          ///< user and system, all threads
  std::chrono::nanoseconds reactor_cpu{};  ///< of its first thread, on which evictd decides
  std::int64_t wakeups = 0;                ///< voluntary context switches of all threads: how often one went to sleep
  std::int64_t reactor_wakeups = 0;
  std::map<std::string, std::int64_t> wakeups_of;  ///< by the name of the thread; of threads of one name together
  std::int64_t resident_bytes = 0;                 ///< VmRSS, as of now
  std::int64_t anonymous_bytes = 0;                ///< of it, what is no file's: what it has allocated
  int threads = 0;
};

[[nodiscard]] ProcessCost cost_of(pid_t process);

}  // namespace bench
