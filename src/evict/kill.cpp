#include "evict/kill.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <utility>

#include "node/cgroup_processes.hpp"
#include "node/file_error.hpp"
#include "pods/cgroup_name.hpp"

namespace evictd::evict {
namespace {

// glibc 2.36 knows these calls only with _GNU_SOURCE headers that clash with <csignal>; the numbers are the kernel's.
int pidfd_open(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }
int pidfd_send_signal(int pidfd, int signal) {
  return static_cast<int>(syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0));
}

bool contains(const std::vector<pid_t>& pids, pid_t pid) { return std::ranges::binary_search(pids, pid); }

class Killing {
 public:
  Killing(const node::CgroupHierarchy& hierarchy, const IsProtected& is_protected)
      : hierarchy_(hierarchy), is_protected_(is_protected) {}

  [[nodiscard]] Result<void> run(const std::string& cgroup) {
    constexpr int most_rounds = 100;  // each takes whoever was forked during the one before; that ends
    for (int round = 0; round < most_rounds; ++round) {
      auto listed = list(cgroup);
      if (!listed) return std::unexpected(listed.error());
      std::erase_if(*listed, [&](pid_t pid) { return is_known(pid); });
      const auto all = listed->size();
      std::erase_if(*listed, is_protected_);
      if (listed->empty()) return {};
      const bool at_once = round == 0 && listed->size() == all && kill_whole(cgroup);
      if (auto taken = at_once ? hold(*listed) : signal_each(cgroup, *listed); !taken) return taken;
    }
    return {};
  }

  Kill take() { return std::move(kill_); }

 private:
  [[nodiscard]] Result<std::vector<pid_t>> list(const std::string& cgroup) const {
    auto pids = node::processes(hierarchy_, cgroup);
    if (pids) return *std::move(pids);
    if (pids.error().is_gone()) return std::vector<pid_t>{};
    return std::unexpected(pids.error());
  }

  [[nodiscard]] bool is_known(pid_t pid) const {
    return std::ranges::find(kill_.processes, pid, &Signalled::pid) != kill_.processes.end();
  }

  void note_first() {
    if (!kill_.first) kill_.first = std::chrono::steady_clock::now();
  }

  /// False where the kernel has no cgroup.kill.
  [[nodiscard]] bool kill_whole(const std::string& cgroup) {
    if (hierarchy_.version() != node::CgroupVersion::v2) return false;
    const auto directory = hierarchy_.memory(cgroup);
    if (!directory) return false;
    const node::FileDescriptor file{::openat(directory->descriptor(), "cgroup.kill", O_WRONLY | O_CLOEXEC)};
    if (!file || ::write(file.get(), "1", 1) != 1) return false;
    note_first();
    kill_.method = "cgroup.kill";
    return true;
  }

  /// Those that were just killed, for who releases their memory. One that is gone by now needs nobody.
  [[nodiscard]] Result<void> hold(const std::vector<pid_t>& pids) {
    for (const auto pid : pids) kill_.processes.push_back({pid, node::FileDescriptor{pidfd_open(pid)}});
    return {};
  }

  [[nodiscard]] Result<void> signal_each(const std::string& cgroup, const std::vector<pid_t>& pids) {
    std::vector<Signalled> held;
    held.reserve(pids.size());
    Result<void> result;  // the first error: whoever else can be signalled is
    const auto failed = [&](std::string_view what, pid_t pid) {
      if (errno != ESRCH && result) result = fail(fmt::format("{} process {}: {}", what, pid, std::strerror(errno)));
    };
    for (const auto pid : pids)
      if (node::FileDescriptor pidfd{pidfd_open(pid)})
        held.push_back({pid, std::move(pidfd)});
      else
        failed("pidfd_open of", pid);
    const auto still = list(cgroup);
    if (!still) return std::unexpected(still.error());
    for (auto& process : held) {
      if (!contains(*still, process.pid)) continue;
      if (pidfd_send_signal(process.pidfd.get(), SIGKILL) == 0)
        note_first();
      else
        failed("SIGKILL to", process.pid);
      kill_.processes.push_back(std::move(process));
    }
    return result;
  }

  const node::CgroupHierarchy& hierarchy_;
  const IsProtected& is_protected_;
  Kill kill_;
};

}  // namespace

Result<Kill> kill_cgroups(const node::CgroupHierarchy& hierarchy, std::string_view pods_cgroup,
                          std::span<const std::string> cgroups, const IsProtected& is_protected) {
  for (const auto& cgroup : cgroups)
    if (!pods::is_below(cgroup, pods_cgroup))
      return fail(
          fmt::format("the cgroup \"{}\" does not lie in {}, where node.podsCgroup has the pods: nobody in it is "
                      "killed but by the runtime",
                      cgroup, pods_cgroup));
  Killing killing{hierarchy, is_protected};
  for (const auto& cgroup : cgroups)
    if (auto killed = killing.run(cgroup); !killed) return std::unexpected(killed.error());
  return killing.take();
}

}  // namespace evictd::evict
