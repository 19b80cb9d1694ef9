#include "benchmarks/supervise.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "testbed/failure.hpp"
#include "testbed/leftovers.hpp"

namespace bench {

namespace {

sigset_t awaited_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&set, number);
  return set;
}

[[noreturn]] void work_as_child(const std::function<int()>& work, const sigset_t& usual_signals) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // then the next testbed on this machine cleans up
  ::sigprocmask(SIG_SETMASK, &usual_signals, nullptr);
  const int code = work();
  std::fflush(nullptr);
  std::_Exit(code);
}

/// Waits for the child's end, and brings it about when the user wants an end. Returns its wait status.
int wait_for(pid_t child, const sigset_t& signals) {
  for (int status = 0;;) {
    int number = 0;
    if (::sigwait(&signals, &number) != 0) continue;
    if (number == SIGCHLD) {
      if (::waitpid(child, &status, WNOHANG) == child) return status;
      continue;
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
    return number;  // as if that signal had ended it
  }
}

}  // namespace

int supervise(const std::function<int()>& work) {
  const auto signals = awaited_signals();
  sigset_t usual;
  ::sigprocmask(SIG_BLOCK, &signals, &usual);
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) testbed::fail_errno("fork");
  if (child == 0) work_as_child(work, usual);

  const int status = wait_for(child, signals);
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  std::fputs("bench: interrupted, cleaning up\n", stderr);
  testbed::remove_leftovers();
  return 128 + WTERMSIG(status);
}

}  // namespace bench
