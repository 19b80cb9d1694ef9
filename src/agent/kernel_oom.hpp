#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/clock.hpp"
#include "agent/decision_log.hpp"
#include "agent/eviction_records.hpp"
#include "agent/kill_order.hpp"
#include "agent/pod_tracker.hpp"
#include "agent/running_pods.hpp"
#include "agent/usage.hpp"
#include "core/duration.hpp"
#include "core/kernel_oom_log.hpp"
#include "core/pod.hpp"
#include "core/synchronizer.hpp"
#include "node/cgroup.hpp"
#include "os/file_error.hpp"
#include "wake/kernel_log.hpp"
#include "wake/memory_counters_file.hpp"

namespace evictd::agent {

/// A kill, or several, of one pod by the kernel's OOM killer.
struct KernelKill {
  core::PodPtr pod;
  std::string container{};                ///< empty: not known
  core::OomKill kill{};                   ///< `limited` and `cgroup` say nothing more; pid 0: the process is not known
  std::string_view shortage = "unknown";  ///< "limit", "node", "unknown"
  bool own_choice = false;
  std::uint32_t kills = 1;
};

/// Which pods the kernel's OOM killer killed in. Each kill is told once: by the kernel's log, which has names, or where
/// that cannot be read or has lost some by the counters of the pods' cgroups (v2: memory.events of a pod's; v1:
/// memory.oom_control of a container's, which is gone with the container). Many kills of one pod within ten seconds
/// become one. On the reactor.
class KernelOom final : public PodListener, public wake::KernelLog::Listener {
 public:
  /// All of these must outlive this.
  struct Parts {
    const core::Synchronizer& policy;
    Usage& usage;
    const RunningPods& pods;
    const EvictionRecords& records;
    const node::CgroupHierarchy& hierarchy;
    std::string pods_cgroup;
    const Clock& clock;
    DecisionLog& log;
    const KillOrder* order = nullptr;                  ///< null: nobody steers the kernel's killer
    bool has_log = false;                              ///< the kernel's log can be read
    core::Duration window = std::chrono::seconds(10);  ///< in which many kills become one
  };

  static constexpr int told_singly = 8;
  /// Of new cgroups so many counters are read in a turn of the reactor, some 10 µs each.
  static constexpr std::size_t first_at_a_time = 128;
  /// The kernel counts before it writes its line, and its log is read every 50 ms.
  static constexpr core::Duration log_delay = std::chrono::milliseconds(300);
  static constexpr core::Duration between_looks = std::chrono::seconds(1);

  KernelOom(const boost::asio::any_io_executor& reactor, Parts parts);

  void pods_changed(const core::PodList& pods) override;
  [[nodiscard]] bool killed(const core::OomKill& kill) override;
  void kills_missed() override { look_soon(); }
  /// Compares what the counters say with what was told.
  void look();

 private:
  /// Of one cgroup.
  struct Counter {
    std::uint64_t list = 0;  // the last one that has it
    std::string uid{};
    std::string container{};
    std::optional<std::int64_t> last{};  // what it said; absent: it was not read yet
    std::int64_t settled = 0;            // what of that was told, or was there before
    std::int64_t unnamed = 0;            // told by this counter, so that the log's word of it is no news
    core::Instant unnamed_until{};
    std::map<std::int64_t, core::Instant> pids{};  // that were told: of a group's first victim the kernel tells twice
  };
  struct Place {
    core::PodPtr pod;
    std::string counted;  // the cgroup whose counter has it
    std::string container;
    bool own_limit = false;
  };
  struct Recent {
    core::Instant since{};
    int told = 0;
    bool own_choice = false;  // the last one told
    std::optional<KernelKill> pending{};
  };

  [[nodiscard]] std::optional<Place> find(const core::OomKill& kill) const;
  [[nodiscard]] bool is_own_choice(const core::Pod& pod) const;
  [[nodiscard]] std::optional<std::int64_t> read_counter(const std::string& cgroup) const;
  [[nodiscard]] bool is_news(Counter& counter, std::int64_t pid);
  void count(const std::string& cgroup, Counter& counter);
  void read_first();
  void add(const std::string& cgroup, std::string_view uid, std::string_view container);
  void tell(KernelKill kill);
  void flush();
  void look_soon();
  void watch_all();

  Parts parts_;
  bool v2_;
  boost::asio::steady_timer first_timer_;
  boost::asio::steady_timer look_timer_;
  boost::asio::steady_timer flush_timer_;
  bool look_due_ = false;
  bool flush_due_ = false;
  core::Instant looked_ = core::Instant::min();
  wake::MemoryCountersFile all_;                          // v2: of the pods' cgroup, which counts for all of them
  std::uint64_t list_ = 0;                                // how many lists there were
  std::map<std::string, Counter, std::less<>> counters_;  // by cgroup
  std::vector<std::string> unread_;                       // of these the cgroups that were not read yet
  std::map<std::string, Recent, std::less<>> recent_;     // by uid and shortage
};

}  // namespace evictd::agent
