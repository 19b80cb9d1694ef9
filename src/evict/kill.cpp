#include "evict/kill.hpp"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include "node/file_descriptor.hpp"

namespace evictd::evict {
namespace {

// glibc 2.36 knows these calls only with _GNU_SOURCE headers that clash with <csignal>; the numbers are the kernel's.
int pidfd_open(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }
int pidfd_send_signal(int pidfd, int signal) {
  return static_cast<int>(syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0));
}

struct Held {
  pid_t pid;
  node::FileDescriptor pidfd;
};

std::vector<Held> hold(const std::vector<pid_t>& pids) {
  std::vector<Held> held;
  held.reserve(pids.size());
  for (const auto pid : pids)
    if (node::FileDescriptor pidfd{pidfd_open(pid)}) held.push_back({pid, std::move(pidfd)});
  return held;
}

}  // namespace

Result<std::size_t> kill_pod(const node::PodCgroups& cgroups, std::string_view uid) {
  constexpr int rounds = 16;  // a fork bomb loses: SIGKILL to all it has is quicker than its forks, round by round
  std::size_t signalled = 0;
  for (int round = 0; round < rounds; ++round) {
    const auto before = cgroups.processes(uid);
    const auto held = hold(before.value_or(std::vector<pid_t>{}));
    const auto still = cgroups.processes(uid);
    if (!before || !still) {
      const auto& error = before ? still.error() : before.error();
      if (error.is_gone()) break;
      return std::unexpected(error);
    }
    std::size_t alive = 0;
    for (const auto& [pid, pidfd] : held) {
      if (std::ranges::find(*still, pid) == still->end()) continue;
      if (pidfd_send_signal(pidfd.get(), SIGKILL) == 0)
        ++alive;
      else if (errno != ESRCH)
        return fail(fmt::format("SIGKILL to process {}: {}", pid, std::strerror(errno)));
    }
    signalled += round == 0 ? alive : 0;
    if (still->empty() || alive == 0) break;
  }
  return signalled;
}

}  // namespace evictd::evict
