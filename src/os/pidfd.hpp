#pragma once
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "os/file_descriptor.hpp"

namespace evictd::os {

/// Holds on to a process: what is done through this is never done to another one that has got its pid since. Readable
/// once it has ended. Not open, and errno says why, where there is none (ESRCH) or no descriptor is left (EMFILE,
/// ENFILE). On any thread. (pidfd_open(2), Linux 5.3)
[[nodiscard]] inline FileDescriptor open_pidfd(pid_t pid) {
  return FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

}  // namespace evictd::os
