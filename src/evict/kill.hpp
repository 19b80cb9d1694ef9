#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/duration.hpp"
#include "core/error.hpp"
#include "evict/protection.hpp"
#include "evict/ready_strike.hpp"
#include "evict/reaper.hpp"
#include "node/cgroup.hpp"
#include "node/cgroup_processes.hpp"

namespace evictd::evict {

/// A cgroup whose processes are to be killed, with those of all cgroups below it.
struct Target {
  std::string cgroup;      ///< a path below the hierarchy's root
  std::string left_out{};  ///< the name of a cgroup right below it whose processes live on: the sandbox's; empty: none
  /// A cgroup of it, or it itself, whose own processes are signalled before any directory is listed: the container that
  /// holds the most. Empty: none.
  std::string first{};
};

struct Kill {
  std::vector<Signalled> held{};         ///< for the reaper: of many processes the first that were signalled
  std::size_t signalled = 0;             ///< processes, each once
  std::string_view method = "SIGKILL";   ///< or "cgroup.kill"
  std::optional<core::Instant> first{};  ///< when the first signal was sent; absent: no process was signalled
  std::optional<Error> error{};          ///< why some could not be: what was done before it and beside it stands
  bool too_many = false;  ///< more processes or cgroups than the caller has time for: some were hit at most
};

/// Of the first container: 3 ms of signals.
inline constexpr std::size_t most_at_first = 64;

/// Beyond these the memory of the killed is back by their own ends before a reaper gets to it.
inline constexpr std::size_t most_held = 128;

/// Sends SIGKILL to every process of the targets, and to no other, without waiting for their ends. A killed process
/// allocates nothing more from the moment the signal lands. From any thread.
///
/// cgroup v2: cgroup.kill (Linux 5.14) of each cgroup right below the target takes all its processes at once. v1, and
/// v2 where that file is missing or a protected process is among them: each process is held by a pidfd (pidfd_open(2),
/// Linux 5.3) and signalled only if its cgroup still lists it then, so a reused pid cannot hit a stranger. That is done
/// in chunks, which take no more than a quarter of the descriptors that evictd may have, and it is repeated until a
/// look brings no new process, since forks may have been under way. A killed process cannot fork.
///
/// At most most_at_first processes of `Target::first` go before all that, held by a pidfd likewise: what holds the
/// memory is struck by some ten system calls, and the rest of the pod, which takes listing its directories, after it.
/// Where `ready` has that container they are five: no file is opened, nor is a process of it looked at that was before.
/// `ready` is used on the calling thread alone, and lets go of all its descriptors where these are short; null: none
/// is.
///
/// A signal costs 40 µs, by either way, since the kernel wakes the process to its end; so 15,000 processes take 0.7 s.
/// `most`: once more processes than that were met in all targets, those counted that were forked meanwhile, or as many
/// cgroups were looked at, each time one was counted, no more is done but `too_many` set. Longer lists of processes are
/// not read to their ends; on v1, where the kernel makes them whole, those of more than 4,096 tasks are not read at
/// all, as far as the pids controller tells.
///
/// Cgroups that are gone count as empty. An error about one process or target does not keep the others from being
/// killed; but where a target does not lie in `pods_cgroup`, where all pods are, no process is signalled at all.
[[nodiscard]] Kill kill_targets(const node::CgroupHierarchy& hierarchy, std::string_view pods_cgroup,
                                std::span<const Target> targets, const IsProtected& is_protected,
                                const node::WalkLimit& most = {}, ReadyStrike* ready = nullptr);

/// Kills without the runtime, in the turn of the reactor that asks for it where that is short, else in a
/// thread of its own; and has the memory of the killed released.
class Killer {
 public:
  /// 20 ms of signals, and as much of directories, which are looked at some four times. With more processes or cgroups
  /// a turn would last too long for what else the node needs meanwhile.
  static constexpr node::WalkLimit most_in_a_turn{.processes = 512, .cgroups = 512};

  /// `hierarchy` and `reaper` outlive this.
  struct Parts {
    const node::CgroupHierarchy& hierarchy;
    std::string pods_cgroup;
    Reaper& reaper;
    IsProtected is_protected;
    ReadyStrike* ready = nullptr;  ///< outlives this, too; null: no strike is made ready
  };

  Killer(boost::asio::any_io_executor reactor, Parts parts);

  /// `held` of the result is with the reaper already. Where there are too many processes it says so. On the reactor.
  [[nodiscard]] Kill kill_now(std::span<const Target> targets);
  /// However many; one after the other.
  [[nodiscard]] boost::asio::awaitable<Kill> kill_beside(std::vector<Target> targets);

 private:
  [[nodiscard]] Kill kill(std::span<const Target> targets, const node::WalkLimit& most, ReadyStrike* ready) const;

  boost::asio::any_io_executor reactor_;
  const Parts parts_;
  boost::asio::thread_pool thread_{1};
};

}  // namespace evictd::evict
