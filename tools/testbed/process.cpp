#include "testbed/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <string_view>

#include "testbed/failure.hpp"
#include "testbed/files.hpp"
#include "testbed/wait.hpp"

namespace testbed {

namespace {

evictd::os::FileDescriptor open_capture(const std::filesystem::path& file) {
  evictd::os::FileDescriptor fd{file.empty() ? ::memfd_create("output", MFD_CLOEXEC)
                                             : ::open(file.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644)};
  if (fd.get() < 0) fail_errno(file.empty() ? "memfd_create" : file.native());
  return fd;
}

/// By a descriptor of its own: from the beginning, wherever the program is.
std::string read_capture(const evictd::os::FileDescriptor& fd) {
  return read_file(fmt::format("/proc/self/fd/{}", fd.get()));
}

/// As the kernel takes them: ended by a null pointer.
std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> result;
  for (const auto& word : words) result.push_back(const_cast<char*>(word.c_str()));
  result.push_back(nullptr);
  return result;
}

/// Our own environment, less the names that are given anew.
std::vector<std::string> environment_with(const std::vector<std::string>& added) {
  const auto given_anew = [&](std::string_view entry) {
    const auto name = entry.substr(0, entry.find('=') + 1);
    return std::ranges::any_of(added, [&](const std::string& other) { return other.starts_with(name); });
  };
  std::vector<std::string> result = added;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!given_anew(*entry)) result.emplace_back(*entry);
  }
  return result;
}

/// posix_spawn, not fork: a fork of a process with gRPC's threads may hang in the child.
pid_t spawn(const std::vector<std::string>& command, const Process::Options& options, int output, int errors) {
  const auto environment = environment_with(options.environment);
  const auto argv = pointers(command);
  const auto envp = pointers(environment);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  if (!options.working_directory.empty()) {
    posix_spawn_file_actions_addchdir_np(&actions, options.working_directory.c_str());
  }

  // A clean slate of signals: none blocked, none ignored, whatever the threads of this process do.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, argv[0], &actions, &attributes, argv.data(), envp.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) fail_errno("starting " + command.front(), error);
  return pid;
}

}  // namespace

Process::Process(const std::vector<std::string>& command, const Options& options)
    : output_(open_capture(options.output)),
      errors_(open_capture(options.errors)),
      pid_(spawn(command, options, output_.get(), errors_.get())) {
  // By syscall: glibc 2.36 declares pidfd_open without C linkage.
  pidfd_ = evictd::os::FileDescriptor{static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0))};
  if (pidfd_.get() >= 0) return;
  const int error = errno;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  fail_errno("pidfd_open", error);
}

Process::~Process() {
  if (pidfd_.get() < 0) return;  // moved from
  kill();
}

void Process::signal(int number) {
  if (!exit_code_) ::kill(pid_, number);  // until it is reaped, the pid is nobody else's
}

void Process::kill() {
  signal(SIGKILL);
  wait(std::chrono::minutes{1});
}

std::optional<int> Process::wait(std::chrono::milliseconds deadline) {
  if (exit_code_) return exit_code_;
  pollfd ended{.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
  const auto end = std::chrono::steady_clock::now() + patient(deadline);
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    const int ready = ::poll(&ended, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready > 0) break;
    if (ready == 0) return std::nullopt;
    if (errno != EINTR) fail_errno("poll");
  }
  int status = 0;
  if (::waitpid(pid_, &status, 0) != pid_) fail_errno("waitpid");
  exit_code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return exit_code_;
}

std::string Process::output() const { return read_capture(output_); }
std::string Process::errors() const { return read_capture(errors_); }

void Process::wait_until_says(std::string_view text) const {
  if (!comes_true(std::chrono::minutes{1}, [&] { return errors().contains(text); }))
    fail(fmt::format("it does not say \"{}\" but:\n{}", text, errors()));
}

std::string run(const std::vector<std::string>& command, std::chrono::milliseconds deadline) {
  Process process(command);
  const auto code = process.wait(deadline);
  const auto line = fmt::format("{}", fmt::join(command, " "));
  if (!code) fail(fmt::format("{}: still running after {} ms", line, patient(deadline).count()));
  if (*code != 0) fail(fmt::format("{}: exit code {}: {}", line, *code, process.errors()));
  return process.output();
}

}  // namespace testbed
