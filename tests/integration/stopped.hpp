#pragma once
#include <sys/types.h>

#include <csignal>

namespace integration {

/// A process stands still for as long as this lives.
class Stopped {
 public:
  explicit Stopped(pid_t pid) : pid_{pid} { ::kill(pid_, SIGSTOP); }
  Stopped(const Stopped&) = delete;
  Stopped& operator=(const Stopped&) = delete;
  ~Stopped() { ::kill(pid_, SIGCONT); }

 private:
  pid_t pid_;
};

}  // namespace integration
