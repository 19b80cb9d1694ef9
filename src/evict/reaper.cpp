#include "evict/reaper.hpp"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <fstream>
#include <functional>
#include <iterator>
#include <mutex>
#include <optional>
#include <utility>

#include "async/detached_thread.hpp"
#include "os/log.hpp"
#include "os/now.hpp"

namespace evictd::evict {
namespace {

constexpr std::size_t most_reaped = 64;  // behind them come address spaces that are gone before their turn

void process_mrelease(int pidfd) {
  constexpr long number = 448;                   // glibc 2.36 has no name for it; the same on every architecture
  static_cast<void>(syscall(number, pidfd, 0));  // ESRCH: gone, EINVAL: its memory is shared
}

/// Resident pages; 0 for one that has exited.
std::int64_t resident(pid_t pid) {
  std::ifstream statm{fmt::format("/proc/{}/statm", pid)};
  std::int64_t size = 0;
  std::int64_t pages = 0;
  statm >> size >> pages;
  return pages;
}

void keep_largest(std::vector<Signalled>& processes) {
  if (processes.size() <= 1) return;
  std::vector<std::pair<std::int64_t, Signalled>> sized;
  for (auto& process : processes) sized.emplace_back(resident(process.pid), std::move(process));
  std::ranges::sort(sized, std::ranges::greater{}, &std::pair<std::int64_t, Signalled>::first);
  processes.clear();
  for (auto& [pages, process] : sized)
    if (processes.size() < most_reaped) processes.push_back(std::move(process));
}

}  // namespace

struct Reaper::Shared {
  Shared(Release given, core::Duration longest) : release{std::move(given)}, patience{longest} {}

  /// A thread that is free takes the next one: a thread that is held up by a large one leaves the rest to the others.
  void work(std::size_t thread) {
    std::unique_lock lock{mutex};
    for (;;) {
      more.wait(lock, [this] { return closed || !next.empty() || !unsorted.empty(); });
      if (closed) return;
      if (next.empty())
        sort(lock);
      else
        release_next(thread, lock);
    }
  }

  void sort(std::unique_lock<std::mutex>& lock) {
    auto processes = std::move(unsorted.front());
    unsorted.pop_front();
    lock.unlock();
    keep_largest(processes);
    lock.lock();
    std::ranges::move(processes, std::back_inserter(next));
    if (processes.size() > 1) more.notify_all();
  }

  void release_next(std::size_t thread, std::unique_lock<std::mutex>& lock) {
    auto process = std::move(next.front());
    next.pop_front();
    calls[thread] = os::now();
    lock.unlock();
    release(process.pidfd.get());
    process.pidfd.reset();
    lock.lock();
    calls[thread].reset();
    told = false;
  }

  [[nodiscard]] bool is_held_up() const {
    const auto is_busy = [](const auto& call) { return call.has_value(); };
    if (!std::ranges::all_of(calls, is_busy)) return false;
    const auto last_begun = *std::ranges::max_element(calls);
    return os::now() - *last_begun >= patience;
  }

  const Release release;
  const core::Duration patience;
  std::mutex mutex;
  std::condition_variable more;
  std::deque<std::vector<Signalled>> unsorted;  // as they were handed over
  std::deque<Signalled> next;
  std::array<std::optional<core::Instant>, threads> calls;  // when each thread's began, if it is in one
  bool told = false;                                        // that no thread is free
  bool closed = false;
};

Reaper::Reaper() : Reaper{process_mrelease} {}

Reaper::Reaper(Release release, core::Duration patience)
    : shared_{std::make_shared<Shared>(std::move(release), patience)} {
  for (std::size_t thread = 0; thread < threads; ++thread)
    async::detach_thread("reaper", [shared = shared_, thread] { shared->work(thread); });
}

Reaper::~Reaper() {
  decltype(Shared::unsorted) unsorted;
  decltype(Shared::next) next;
  {
    const std::scoped_lock lock{shared_->mutex};
    shared_->closed = true;
    unsorted.swap(shared_->unsorted);
    next.swap(shared_->next);
  }
  shared_->more.notify_all();
}

void Reaper::reap(std::vector<Signalled> processes) {
  std::erase_if(processes, [](const Signalled& process) { return !process.pidfd; });
  if (processes.empty()) return;
  std::unique_lock lock{shared_->mutex};
  if (!shared_->is_held_up()) {
    shared_->unsorted.push_back(std::move(processes));
    lock.unlock();
    shared_->more.notify_one();
    return;
  }
  shared_->unsorted.clear();
  shared_->next.clear();
  const bool is_told = std::exchange(shared_->told, true);
  lock.unlock();
  if (!is_told)
    os::log_warning(
        "the memory of two killed processes cannot be released, since a disk hangs or they are large; that of others "
        "comes back when they exit");
}

}  // namespace evictd::evict
