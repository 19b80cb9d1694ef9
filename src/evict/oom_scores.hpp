#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/oom_steering.hpp"
#include "evict/protection.hpp"
#include "node/cgroup.hpp"

namespace evictd::evict {

/// Whom the kernel's OOM killer is to take, first to go first.
struct OomPlan {
  struct Pod {
    std::string cgroup;  ///< the pod's own, below the hierarchy's root
    int most = 0;        ///< see core::OomPod
  };
  std::vector<Pod> pods;
  int behind = 0;  ///< the highest score among all others (core::steer)
};

struct OomOutcome {
  std::size_t changed = 0;  ///< processes whose oom_score_adj was written
  std::size_t refused = 0;  ///< processes of which it may not be written
  std::string error{};      ///< why, or what else went wrong; empty: nothing did
};

/// Raises the oom_score_adj of pods' processes (core/oom_steering.hpp), and gives back what they had. Nothing is ever
/// set below what a process had of itself.
///
/// Before anything is raised a note says of whom, so that the next evictd and "evictd disarm" can undo it. A process is
/// known by its pid and the time of its start, and is written to only if its pod's cgroup still lists it. One that was
/// forked by a raised one has the raised value from birth: it shows by that in the pod's cgroup. So no pod is raised to
/// what one of its processes has of itself, nor to what the kubelet gives a container without a request, which may be
/// started later. A pod is forgotten once a look at all of its processes has found nobody with a raised value.
///
/// It reads and writes some hundred files, and reads one of each process beyond them: not on the reactor. From one
/// thread at a time, but for end().
class OomScores {
 public:
  static constexpr std::size_t most_pods = core::most_steered_pods;
  static constexpr std::size_t most_processes = 64;  ///< of a pod that are raised: the largest
  static constexpr std::size_t most_looked_at = 512;

  struct Places {
    std::filesystem::path cgroup_mount;
    std::string proc = "/proc";
    std::filesystem::path note;
    IsProtected is_protected;
    std::int64_t memory = 0;  ///< bytes that the kernel takes shares of; not needed to give back
  };

  explicit OomScores(Places places) : places_{std::move(places)} {}

  /// Raises these pods, and gives back to all others that were raised.
  [[nodiscard]] OomOutcome follow(const OomPlan& plan);
  /// Gives all back. The note goes once nothing is left to do.
  [[nodiscard]] OomOutcome restore();
  /// The same for good: nothing is raised any more. Also beside a follow() that is under way on another thread; one
  /// that does not end within a second leaves its work to whoever reads the note.
  OomOutcome end();
  /// Takes over what the note says that an earlier evictd had raised; false: there is no note.
  [[nodiscard]] bool adopt();

 private:
  struct Held {
    std::uint64_t start = 0;  // ticks since the boot
    int own = 0;
  };
  struct Raised {
    std::map<int, int> values;  // that were written, and the highest that somebody had before
    std::map<pid_t, Held> processes;
  };
  struct Seen;
  struct Look;
  struct Change {
    pid_t pid = 0;
    std::uint64_t start = 0;
    int value = 0;
  };
  using Pods = std::map<std::string, Raised, std::less<>>;  // by cgroup

  [[nodiscard]] OomOutcome restore_locked();
  [[nodiscard]] Look look(const node::CgroupHierarchy& hierarchy, const std::string& cgroup) const;
  void give_back(const node::CgroupHierarchy& hierarchy, Pods::iterator pod, OomOutcome& outcome);
  [[nodiscard]] Result<std::vector<Change>> raised_still(const node::CgroupHierarchy& hierarchy,
                                                         const std::string& cgroup, const Raised& raised) const;
  void write(const node::CgroupHierarchy& hierarchy, const std::string& cgroup, const std::vector<Change>& changes,
             OomOutcome& outcome) const;
  [[nodiscard]] static core::OomPod weigh(Look& look, int most);
  void forget_ended(const std::string& cgroup, const std::vector<Seen>& seen);
  [[nodiscard]] std::vector<Change> note(const std::string& cgroup, const std::vector<Seen>& seen,
                                         std::optional<int> raised, int most);
  [[nodiscard]] Result<void> save();

  Places places_;
  std::timed_mutex mutex_;
  bool ended_ = false;
  Pods pods_;
  std::string saved_;  // the note
};

/// What an evictd left that was killed. A line of what was done, for people; empty: there was nothing to do.
[[nodiscard]] std::string restore_left_oom_scores(const OomScores::Places& places);

}  // namespace evictd::evict
