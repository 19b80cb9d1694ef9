#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/duration.hpp"
#include "core/wake.hpp"
#include "node/cgroup.hpp"
#include "os/directory.hpp"
#include "os/file_error.hpp"
#include "wake/fence.hpp"
#include "wake/memory_counters_file.hpp"
#include "wake/source.hpp"
#include "wake/wakes.hpp"

namespace evictd::wake {

/// memory.high of the pods' cgroup (v2) in the hands of one source: it is set and lifted here, the kernel's word that
/// it was exceeded is heard, and it is lifted when this goes. A memory.high of someone else is left alone.
///
/// What stands is marked as evictd's (node::FenceMark), and a file tells of it: what outlives a killed evictd is lifted
/// by "evictd disarm", which the unit then runs, and by the next start. On the reactor.
class PodsHigh {
 public:
  class Listener {
   public:
    /// Somebody allocated beyond what stands, and was held. At most every 100 ms.
    virtual void high_exceeded() = 0;
    /// The time that look_again_at() was given has come.
    virtual void look_again() = 0;

   protected:
    ~Listener() = default;
  };
  struct Options {
    core::WakeSource source;     ///< in whose hands it is
    std::string cgroup;          ///< the pods'
    std::filesystem::path note;  ///< a file, on a tmpfs, that names the cgroup for as long as this is there
    bool among_pods = false;     ///< evictd runs in the pods' cgroup, and would have itself held: nothing is set
  };

  /// All of these must outlive this.
  PodsHigh(const boost::asio::any_io_executor& reactor, Wakes& wakes, const node::CgroupHierarchy& hierarchy,
           Options options, Listener& listener);
  PodsHigh(const PodsHigh&) = delete;
  PodsHigh& operator=(const PodsHigh&) = delete;
  ~PodsHigh();

  /// Carries the goal out; without one all stays as it is. The status has what it came to: "armed", what is wrong, or
  /// `unarmed` where nothing stands, why it does not.
  void adjust(const std::optional<FenceGoal>& goal, std::string_view unarmed);
  /// The kernel may have forgotten that it is listened to: the next adjust() registers anew.
  void rearm_all() { rearm_all_ = true; }
  /// In place of the time before.
  void look_again_at(core::Instant time);

  /// Bytes, while it stands and is evictd's.
  [[nodiscard]] std::optional<std::int64_t> high() const { return high_; }
  /// Begins a pass because of this cgroup's memory.high, or for another reason.
  void wake() { notifier_.wake("memory.high of " + options_.cgroup); }
  void wake(std::string detail) { notifier_.wake(std::move(detail)); }

  [[nodiscard]] SourceStatus status() const;

 private:
  [[nodiscard]] os::FileResult<void> adjust(const os::Directory& cgroup, const FenceGoal& goal,
                                            std::string_view unarmed);
  [[nodiscard]] os::FileResult<void> listen(const os::Directory& cgroup);
  void stop_listening();
  void found(std::string state);

  boost::asio::steady_timer timer_;
  core::Instant due_ = core::Instant::max();
  Notifier notifier_;
  const node::CgroupHierarchy& hierarchy_;
  Options options_;
  Listener& listener_;
  MemoryCountersFile events_;
  bool rearm_all_ = false;
  std::string state_ = "waiting: no level yet";
  std::optional<std::int64_t> high_;
};

/// The cgroups of which a note of PodsHigh's may tell: what is the pods' cgroup by now, and what it was to the one that
/// wrote the note.
[[nodiscard]] std::vector<std::string> noted_cgroups(std::vector<std::string> pods_cgroups,
                                                     const std::filesystem::path& note);

/// What an earlier evictd left there, killed before it could lift it, goes, and its note; whatever the configuration
/// says by now. What is done, or cannot be done, is logged.
void lift_old_fence(const node::CgroupHierarchy& hierarchy, const std::string& pods_cgroup,
                    const std::filesystem::path& note);

/// Where the loop hangs, which alone could lift it: nobody is held any more. The loop sets it anew once it goes on. Any
/// thread; what is done, or cannot be done, is logged.
void let_go_while_loop_hangs(const node::CgroupHierarchy& hierarchy, const std::string& pods_cgroup);

}  // namespace evictd::wake
