#include "evict/reaper.hpp"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/post.hpp>
#include <cstdint>
#include <fstream>
#include <memory>
#include <utility>

namespace evictd::evict {
namespace {

constexpr std::size_t most = 64;  // behind them come address spaces that are gone before their turn

int process_mrelease(int pidfd) {
  constexpr long number = 448;  // glibc 2.36 has no name for it; the same on every architecture
  return static_cast<int>(syscall(number, pidfd, 0));
}

/// Resident pages; 0 for one that has exited.
std::int64_t resident(pid_t pid) {
  std::ifstream statm{fmt::format("/proc/{}/statm", pid)};
  std::int64_t size = 0;
  std::int64_t pages = 0;
  statm >> size >> pages;
  return pages;
}

struct Queue {
  std::vector<Signalled> processes;
  std::atomic<std::size_t> next = 0;

  /// A thread that is free takes the next one: a thread that is held up by a large one leaves the rest to the others.
  void work() {
    for (auto i = next++; i < processes.size(); i = next++)
      static_cast<void>(process_mrelease(processes[i].pidfd.get()));  // ESRCH: gone, EINVAL: its memory is shared
  }
};

}  // namespace

void Reaper::reap(std::vector<Signalled> processes) {
  std::erase_if(processes, [](const Signalled& process) { return !process.pidfd; });
  if (processes.empty()) return;
  auto queue = std::make_shared<Queue>();
  queue->processes = std::move(processes);
  boost::asio::post(pool_, [this, queue] {
    if (queue->processes.size() > 1) {
      std::vector<std::pair<std::int64_t, Signalled>> sized;
      for (auto& process : queue->processes) sized.emplace_back(resident(process.pid), std::move(process));
      std::ranges::sort(sized, std::ranges::greater{}, &std::pair<std::int64_t, Signalled>::first);
      queue->processes.clear();
      for (auto& [pages, process] : sized)
        if (queue->processes.size() < most) queue->processes.push_back(std::move(process));
    }
    for (std::size_t i = 1; i < std::min(threads, queue->processes.size()); ++i)
      boost::asio::post(pool_, [queue] { queue->work(); });
    queue->work();
  });
}

}  // namespace evictd::evict
