#include "testbed/process_table.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <optional>
#include <string>

#include "os/file_descriptor.hpp"
#include "os/numbers.hpp"
#include "testbed/files.hpp"
#include "testbed/wait.hpp"

namespace testbed {

namespace fs = std::filesystem;

namespace {

std::vector<pid_t> all_processes() {
  std::vector<pid_t> result;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const auto pid = evictd::os::parse_number(entry.path().filename().native());
    if (pid) result.push_back(static_cast<pid_t>(*pid));
  }
  return result;
}

/// Nothing for a process that is gone, or dead and only not yet reaped.
std::optional<pid_t> parent_of(pid_t pid) {
  const auto stat = try_read_file(fs::path("/proc") / std::to_string(pid) / "stat");
  if (!stat) return std::nullopt;
  // "PID (NAME) STATE PPID …": the name may hold anything, so the last parenthesis is what counts.
  const auto name_end = stat->rfind(')');
  if (name_end == std::string::npos || name_end + 4 >= stat->size()) return std::nullopt;
  const char state = (*stat)[name_end + 2];
  if (state == 'Z' || state == 'X') return std::nullopt;
  return static_cast<pid_t>(evictd::os::parse_number(stat->substr(name_end + 4), false).value_or(0));
}

/// By its pidfd; one that could not be had is of a process that was gone already.
bool has_ended(const evictd::os::FileDescriptor& pidfd) {
  pollfd ended{.fd = pidfd.get(), .events = POLLIN, .revents = 0};
  return pidfd.get() < 0 || ::poll(&ended, 1, 0) == 1;
}

}  // namespace

std::string mark_of(const fs::path& directory) { return "EVICTD_TESTBED=" + directory.native(); }

std::vector<pid_t> marked_processes(const fs::path& directory) {
  // Each entry of an environment ends in a NUL byte.
  const std::string entry = mark_of(directory) + '\0';
  std::vector<pid_t> result;
  for (const pid_t pid : all_processes()) {
    const auto environment = try_read_file(fs::path("/proc") / std::to_string(pid) / "environ");
    if (environment && (environment->starts_with(entry) || environment->find('\0' + entry) != std::string::npos)) {
      result.push_back(pid);
    }
  }
  return result;
}

std::vector<pid_t> with_descendants(std::vector<pid_t> processes) {
  std::multimap<pid_t, pid_t> children;
  for (const pid_t pid : all_processes()) {
    if (const auto parent = parent_of(pid)) children.emplace(*parent, pid);
  }
  for (std::size_t next = 0; next < processes.size(); ++next) {
    const auto [first, last] = children.equal_range(processes[next]);
    for (auto child = first; child != last; ++child) {
      if (std::ranges::find(processes, child->second) == processes.end()) processes.push_back(child->second);
    }
  }
  return processes;
}

void kill_all(const std::function<std::vector<pid_t>()>& list) {
  std::map<pid_t, evictd::os::FileDescriptor> killed;
  wait_until("every process of the testbed is gone after SIGKILL", std::chrono::minutes{1}, [&] {
    const auto processes = list();
    for (const pid_t pid : processes) {
      killed.insert_or_assign(pid, evictd::os::FileDescriptor{static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))});
      ::kill(pid, SIGKILL);
    }
    return processes.empty() && std::ranges::all_of(killed, [](const auto& entry) { return has_ended(entry.second); });
  });
}

}  // namespace testbed
