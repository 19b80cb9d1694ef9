#pragma once
#include <functional>

namespace evictd::async {

/// Where calls are made that may block for ever, beside the reactor: a disk, a mount whose server is gone.
class Worker {
 public:
  Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  /// Waits for nothing. Work that is under way goes on, and what has not begun is dropped; no `done` is called any
  /// more.
  virtual ~Worker() = default;

  /// Does `work` after everything that was given before, then calls `done` on the reactor. To be called on the reactor.
  /// `work` must own what it uses, nothing of it may belong to the reactor, and it must not throw. Where there is no
  /// thread to do it, neither is called.
  virtual void run(std::move_only_function<void()> work, std::move_only_function<void()> done) = 0;
};

}  // namespace evictd::async
