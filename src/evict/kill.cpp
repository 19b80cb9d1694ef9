#include "evict/kill.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <utility>

#include "async/sleep.hpp"
#include "node/cgroup_processes.hpp"
#include "os/directory.hpp"
#include "os/kept_file.hpp"
#include "os/now.hpp"
#include "os/pidfd.hpp"
#include "pods/cgroup_name.hpp"

namespace asio = boost::asio;

namespace evictd::evict {
namespace {

using Pids = std::vector<pid_t>;  // in rising order

// glibc 2.36 knows these calls only with _GNU_SOURCE headers that clash with <csignal>; the numbers are the kernel's.
int pidfd_send_signal(int pidfd, int signal) {
  return static_cast<int>(syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0));
}

using os::now;

bool contains(const Pids& pids, pid_t pid) { return std::ranges::binary_search(pids, pid); }

/// How many processes are held at once. The rest of the descriptors is for the files that are read meanwhile, and for
/// connections. More at once are fewer readings of the cgroup's list in between.
std::size_t largest_chunk() {
  constexpr rlim_t most = 4096;
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return 64;
  return static_cast<std::size_t>(std::clamp<rlim_t>(files.rlim_cur / 4, 8, most));
}

/// Whether it is of the target, and not of what is left out.
bool may_be_first(const Target& target) {
  const auto is_of = [&](std::string_view cgroup) {
    return target.first == cgroup || pods::is_below(target.first, cgroup);
  };
  return is_of(target.cgroup) && (target.left_out.empty() || !is_of(target.cgroup + '/' + target.left_out));
}

class Killing {
 public:
  Killing(const node::CgroupHierarchy& hierarchy, const IsProtected& is_protected, const node::WalkLimit& most,
          ReadyStrike* ready)
      : hierarchy_(hierarchy), is_protected_(is_protected), most_(most), ready_(ready) {}

  /// The first container's own processes, or none where there are no descriptors: run() takes what is left.
  void strike(const Target& target) {
    auto container = ready_ != nullptr ? ready_->take(target.first) : std::nullopt;
    if (!(container && container->was_looked_at()) && is_long_to_list(target)) return;
    auto pids = list_first(target, container);
    pids.resize(std::min({pids.size(), most_at_first, most_.processes}));
    // Whom it knows is looked at once it is held: only then is it certain who has the pid.
    const auto is_known = [&](pid_t pid) { return container && container->knows(pid); };
    std::erase_if(pids, [&](pid_t pid) { return !is_known(pid) && is_protected_(pid); });
    bool used_up = false;
    auto held = hold(pids, used_up);
    if (used_up) keep_none();
    if (used_up || held.empty()) return;
    std::erase_if(held, [&](const Signalled& process) {
      return is_known(process.pid) && !container->is_unprotected(process.pid) && is_protected_(process.pid);
    });
    for (const auto pid : signal(std::move(held), list_first(target, container))) struck_.push_back(pid);
    std::ranges::sort(struck_);
  }

  void run(std::span<const Target> targets) {
    for (const auto& target : targets) {
      if (kill_.too_many) return;
      known_ = struck_;
      run(target);
      met_ += known_.size() - struck_.size();
    }
  }

  [[nodiscard]] bool is_over() const { return kill_.too_many; }
  Kill take() { return std::move(kill_); }

 private:
  void run(const Target& target) {
    constexpr int most_rounds = 100;  // each takes what was forked during the one before; that ends
    if (is_long_to_list(target)) return;
    for (int round = 0; round < most_rounds; ++round) {
      const auto listed = list(target);
      if (!listed) return;
      Pids fresh;
      std::ranges::set_difference(*listed, known_, std::back_inserter(fresh));
      if (round > 0 && fresh.empty()) return;
      if (met_ + known_.size() + fresh.size() > most_.processes) {
        kill_.too_many = true;
        return;
      }
      known_.insert(known_.end(), fresh.begin(), fresh.end());
      std::ranges::sort(known_);
      if (round == 0 && kill_at_once(target, *listed, fresh)) continue;
      if (fresh.empty() || !signal_in_chunks(target, fresh)) return;
    }
  }

  /// Nothing where there are too many beside those that are known, who are listed until they have died.
  [[nodiscard]] std::optional<Pids> list(const Target& target) {
    const auto most = most_.processes;
    const auto room = std::numeric_limits<std::size_t>::max() - most;
    node::WalkLimit left{.processes = most + std::min(known_.size(), room), .cgroups = cgroups_left_};
    const auto read = [&] { return node::processes_within(left, hierarchy_, target.cgroup, target.left_out); };
    auto pids = read();
    if (!pids && pids.error().is_out_of_descriptors() && keep_none()) pids = read();
    cgroups_left_ = left.cgroups;
    if (pids) {
      if (!*pids) kill_.too_many = true;
      return *std::move(pids);
    }
    if (!pids.error().is_gone()) fail_with(pids.error());
    return Pids{};
  }

  /// On v1 the kernel lists all processes before it names the first, 1.3 µs each. Then they are too many.
  [[nodiscard]] bool is_long_to_list(const Target& target) {
    constexpr std::int64_t most_tasks = 4096;
    if (most_.processes > most_tasks || hierarchy_.version() != node::CgroupVersion::v1) return false;
    if (node::task_count(hierarchy_, target.cgroup).value_or(0) <= most_tasks) return false;
    return kill_.too_many = true;
  }

  /// What was made ready may be stale: then by its path.
  [[nodiscard]] Pids list_first(const Target& target, std::optional<ReadyContainer>& container) {
    if (container)
      if (auto listed = container->list()) return *std::move(listed);
    auto pids = node::first_processes(hierarchy_, target.first);
    if (!pids && pids.error().is_out_of_descriptors() && keep_none())
      pids = node::first_processes(hierarchy_, target.first);
    if (pids) return *std::move(pids);
    fail_with(pids.error());
    return {};
  }

  /// Where descriptors are short none are kept for the reaper, nor for later strikes: reading the lists takes some.
  /// Whether that has freed any.
  bool keep_none() {
    most_held_ = 0;
    const bool frees = !kill_.held.empty() || (ready_ != nullptr && ready_->descriptors() > 0);
    kill_.held.clear();
    if (ready_ != nullptr) ready_->release();
    return frees;
  }

  /// The first error is the one to tell.
  void fail_with(Error error) {
    if (!kill_.error) kill_.error = std::move(error);
  }

  void count(std::size_t signalled, core::Instant since) {
    if (signalled > 0 && !kill_.first) kill_.first = since;
    kill_.signalled += signalled;
  }

  /// All that are listed, of which `fresh` were not signalled yet: what these have forked since goes with them. False
  /// where that cannot be done: there is nobody, the kernel has no cgroup.kill, or a process among them is protected.
  [[nodiscard]] bool kill_at_once(const Target& target, const Pids& listed, const Pids& fresh) {
    if (listed.empty() || hierarchy_.version() != node::CgroupVersion::v2) return false;
    auto unprotected = listed;
    remove_protected(unprotected, is_protected_);
    if (unprotected.size() != listed.size()) return false;
    const auto directory = hierarchy_.memory(target.cgroup);
    if (!directory) return false;
    const auto begin = now();
    if (target.left_out.empty() ? !kill_whole(*directory) : !kill_below(*directory, target.left_out)) return false;
    count(fresh.size(), begin);
    kill_.method = "cgroup.kill";
    const auto room = std::min({most_held_ - kill_.held.size(), largest_chunk(), fresh.size()});
    bool used_up = false;  // then those that are not held are dead all the same
    for (auto& process : hold(std::span{fresh}.first(room), used_up)) kill_.held.push_back(std::move(process));
    return true;
  }

  [[nodiscard]] static bool kill_whole(const os::Directory& cgroup) {
    const os::FileDescriptor file{::openat(cgroup.descriptor(), "cgroup.kill", O_WRONLY | O_CLOEXEC)};
    return file && ::write(file.get(), "1", 1) == 1;
  }

  /// False also where there are processes right in the cgroup. A pod's own has none: it hands controllers down.
  [[nodiscard]] static bool kill_below(const os::Directory& cgroup, std::string_view left_out) {
    const auto names = cgroup.subdirectories();
    if (!names) return false;
    bool all = true;
    for (const auto& name : *names) {
      if (name == left_out) continue;
      const auto below = cgroup.subdirectory(name);
      if (below ? !kill_whole(*below) : !below.error().is_gone()) all = false;
    }
    std::array<char, 64> buffer;
    const auto own = cgroup.file("cgroup.procs");
    const auto listed = own ? own->read(buffer) : std::unexpected(own.error());
    return all && listed && listed->empty();
  }

  /// False where there are no descriptors to do it with. The first chunk is a small one, so that the first signal is
  /// not behind thousands of other calls.
  [[nodiscard]] bool signal_in_chunks(const Target& target, const Pids& pids) {
    auto largest = largest_chunk();
    std::size_t size = 256;
    for (std::span<const pid_t> rest{pids}; !rest.empty(); size = std::min(size * 4, largest)) {
      const auto chunk = rest.first(std::min({size, largest, rest.size()}));
      Pids wanted(chunk.begin(), chunk.end());
      remove_protected(wanted, is_protected_);
      bool used_up = false;
      auto held = hold(wanted, used_up);
      if (!used_up) {
        rest = rest.subspan(chunk.size());
      } else if (!held.empty()) {
        rest = rest.subspan(static_cast<std::size_t>(std::ranges::upper_bound(rest, held.back().pid) - rest.begin()));
        largest = size = std::max<std::size_t>(held.size() / 4, 1);
      } else if (most_held_ == 0) {
        fail_with(Error{fmt::format("{} processes are not signalled: {}", rest.size(), std::strerror(EMFILE))});
        return false;
      }
      if (used_up) keep_none();
      if (held.empty()) continue;
      const auto still = list(target);
      if (!still) return false;
      signal(std::move(held), *still);
    }
    return true;
  }

  /// Where the descriptors are used up it holds fewer, and leaves some for the reading of the list.
  [[nodiscard]] std::vector<Signalled> hold(std::span<const pid_t> pids, bool& used_up) {
    constexpr std::size_t spare = 8;
    std::vector<Signalled> held;
    held.reserve(pids.size());
    for (const auto pid : pids) {
      if (auto pidfd = os::open_pidfd(pid)) {
        held.push_back({pid, std::move(pidfd)});
      } else if (errno == EMFILE || errno == ENFILE) {
        used_up = true;
        held.resize(held.size() - std::min(spare, held.size()));
        break;
      } else if (errno != ESRCH) {
        fail_with(Error{fmt::format("pidfd_open of process {}: {}", pid, std::strerror(errno))});
      }
    }
    return held;
  }

  /// Those of the held that their cgroup lists still. The result: whom.
  Pids signal(std::vector<Signalled> held, const Pids& still) {
    Pids signalled;
    for (auto& process : held) {
      if (!contains(still, process.pid)) continue;
      if (pidfd_send_signal(process.pidfd.get(), SIGKILL) == 0) {
        count(1, now());
        signalled.push_back(process.pid);
        if (kill_.held.size() < most_held_) kill_.held.push_back(std::move(process));
      } else if (errno != ESRCH) {
        fail_with(Error{fmt::format("SIGKILL to process {}: {}", process.pid, std::strerror(errno))});
      }
    }
    return signalled;
  }

  const node::CgroupHierarchy& hierarchy_;
  const IsProtected& is_protected_;
  const node::WalkLimit most_;
  ReadyStrike* const ready_;
  Pids struck_;          // before the trees were listed
  Pids known_;           // that the target's lists have named, and struck_
  std::size_t met_ = 0;  // the same of the targets before
  std::size_t cgroups_left_ = most_.cgroups;
  std::size_t most_held_ = most_held;
  Kill kill_;
};

}  // namespace

Kill kill_targets(const node::CgroupHierarchy& hierarchy, std::string_view pods_cgroup, std::span<const Target> targets,
                  const IsProtected& is_protected, const node::WalkLimit& most, ReadyStrike* ready) {
  for (const auto& target : targets)
    if (!pods::is_below(target.cgroup, pods_cgroup))
      return Kill{.error = Error{fmt::format(
                      "the cgroup \"{}\" does not lie in {}, where node.podsCgroup has the pods: nobody in it is "
                      "killed but by the runtime",
                      target.cgroup, pods_cgroup)}};
  Killing killing{hierarchy, is_protected, most, ready};
  for (const auto& target : targets)
    if (may_be_first(target) && !killing.is_over()) killing.strike(target);
  killing.run(targets);
  return killing.take();
}

Killer::Killer(asio::any_io_executor reactor, Parts parts) : reactor_{std::move(reactor)}, parts_{std::move(parts)} {}

Kill Killer::kill(std::span<const Target> targets, const node::WalkLimit& most, ReadyStrike* ready) const {
  auto kill = kill_targets(parts_.hierarchy, parts_.pods_cgroup, targets, parts_.is_protected, most, ready);
  parts_.reaper.reap(std::exchange(kill.held, {}));
  return kill;
}

Kill Killer::kill_now(std::span<const Target> targets) { return kill(targets, most_in_a_turn, parts_.ready); }

asio::awaitable<Kill> Killer::kill_beside(std::vector<Target> targets) {
  struct Waiting {
    asio::steady_timer done;  // never expires
    std::optional<Kill> kill{};
  };
  const auto waiting = std::make_shared<Waiting>(asio::steady_timer{reactor_, asio::steady_timer::time_point::max()});
  if (parts_.ready != nullptr) parts_.ready->release();  // on this thread alone; so many processes take descriptors
  asio::post(thread_, [this, waiting, targets = std::move(targets)] {
    auto kill = this->kill(targets, {}, nullptr);
    asio::post(reactor_, [waiting, kill = std::move(kill)]() mutable {
      waiting->kill = std::move(kill);
      waiting->done.cancel();
    });
  });
  while (!waiting->kill) co_await async::wait(waiting->done);
  co_return std::move(*waiting->kill);
}

}  // namespace evictd::evict
