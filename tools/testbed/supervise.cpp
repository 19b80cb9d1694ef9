#include "testbed/supervise.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>

#include "testbed/failure.hpp"
#include "testbed/leftovers.hpp"

namespace testbed {

namespace {

sigset_t signals_to_end() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, number);
  return set;
}

/// Forks. In the child it does the work, and does not return.
pid_t start(const std::function<int()>& work, const sigset_t& signals_of_child) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) fail_errno("fork");
  if (child > 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // then the next testbed on this machine cleans up
  ::sigprocmask(SIG_SETMASK, &signals_of_child, nullptr);
  int code = 1;
  report_failure([&] { code = work(); });
  std::fflush(nullptr);
  std::_Exit(code);
}

/// Waits for the child's end, and brings it about when the user wants an end. Returns its wait status. `patience`: so
/// many times the user's signal is handed on to the child, which ends by itself.
int wait_for(pid_t child, const sigset_t& signals, int patience) {
  for (int status = 0;;) {
    int number = 0;
    if (::sigwait(&signals, &number) != 0) continue;
    if (number == SIGCHLD) {
      if (::waitpid(child, &status, WNOHANG) == child) return status;
      continue;
    }
    if (patience-- > 0) {
      ::kill(child, number);
      continue;
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
    return number;  // as if that signal had ended it
  }
}

/// `asked_first`: the child has the signals that end it blocked, and is told of the first one.
int supervise(const std::function<int()>& work, bool asked_first) {
  const auto ending = signals_to_end();
  auto awaited = ending;
  sigaddset(&awaited, SIGCHLD);
  sigset_t usual;
  ::sigprocmask(SIG_BLOCK, &awaited, &usual);
  const pid_t child = start(work, asked_first ? ending : usual);
  const int status = wait_for(child, awaited, asked_first ? 1 : 0);
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  const int number = WTERMSIG(status);
  const auto what = ::sigismember(&ending, number) == 1
                        ? "interrupted"
                        : fmt::format("ended by signal {} ({})", number, ::strsignal(number));
  fmt::print(stderr, "{}: {}, cleaning up\n", ::program_invocation_short_name, what);
  remove_leftovers();
  return 128 + number;
}

}  // namespace

int supervise(const std::function<int()>& work) { return supervise(work, false); }

int supervise_until_asked(const std::function<int(const std::stop_token&)>& work) {
  return supervise(
      [&work] {
        ::setpgid(0, 0);
        std::stop_source source;
        std::thread{[source]() mutable {
          const auto signals = signals_to_end();
          int number = 0;
          ::sigwait(&signals, &number);
          source.request_stop();
        }}.detach();
        return work(source.get_token());
      },
      true);
}

}  // namespace testbed
