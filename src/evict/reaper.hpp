#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "core/duration.hpp"
#include "os/file_descriptor.hpp"

namespace evictd::evict {

/// A process that was sent SIGKILL, held by a descriptor that never comes to mean another process.
struct Signalled {
  pid_t pid = 0;
  os::FileDescriptor pidfd;
};

/// Takes back the memory of killed processes from threads of its own (process_mrelease(2), Linux 5.15): they need not
/// be scheduled for that, and a large address space is unmapped beside their own exit. Where the kernel lacks the call
/// nothing happens, and the memory comes back when the processes exit.
///
/// The call waits for whoever holds the lock of the address space, which may be a thread of the pod that waits for a
/// disk: for as long as that hangs. So nobody waits for the threads, and while none is free nothing is kept for them.
class Reaper {
 public:
  static constexpr std::size_t threads = 2;

  /// A thread is held up once a call has taken so long. A few GiB are released by then, and no more depends on it than
  /// how soon the memory of others is back.
  static constexpr core::Duration patience = std::chrono::seconds(1);

  /// Called by the threads, by all of them at a time; may block for ever, and must own what it uses.
  using Release = std::move_only_function<void(int pidfd) const>;

  /// Throws std::system_error where no threads can be had.
  Reaper();
  /// For tests.
  explicit Reaper(Release release, core::Duration patience = Reaper::patience);
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;
  /// Waits for nothing: calls that are under way go on, and what has not begun is let go of.
  ~Reaper();

  /// The largest address spaces first, at most some dozens. Where all threads are held up, these processes and those
  /// that wait are let go of, and that is logged once until a thread is free. Returns at once. From any thread.
  void reap(std::vector<Signalled> processes);

 private:
  struct Shared;  // the threads' as well

  std::shared_ptr<Shared> shared_;
};

}  // namespace evictd::evict
