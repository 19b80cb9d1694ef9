#pragma once
#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "agent/clock.hpp"
#include "agent/decision_log.hpp"
#include "agent/node_reports.hpp"
#include "agent/running_pods.hpp"
#include "agent/usage.hpp"
#include "async/worker.hpp"
#include "core/duration.hpp"
#include "core/observation.hpp"
#include "core/synchronizer.hpp"
#include "core/threshold.hpp"
#include "core/trim.hpp"
#include "evict/cache_trim.hpp"
#include "node/cgroup.hpp"
#include "wake/sampler.hpp"
#include "wake/wakes.hpp"

namespace evictd::agent {

/// What a trim came to.
struct TrimReport {
  core::Threshold threshold;
  core::Observation before;
  std::optional<core::Observation> after;  ///< absent: the node could not be read
  bool still_short = false;                ///< the threshold is met, whatever was gained, or that cannot be seen
  bool pods_go = false;                    ///< one is being evicted now, or has to be
  std::size_t programs_told = 0;
  evict::TrimResult result;
};

/// What a trim has to do with the rest of evictd. On the reactor.
class TrimmedNode {
 public:
  /// Decisions are carried out, and not only reported.
  [[nodiscard]] virtual bool acts() const = 0;
  /// A pod's eviction is under way.
  [[nodiscard]] virtual bool evicts() const = 0;
  /// The node's counters as they are now.
  [[nodiscard]] virtual core::Observations look() = 0;
  /// Tells programs that listen that memory is short; how many were told.
  virtual std::size_t tell_programs() = 0;

 protected:
  ~TrimmedNode() = default;
};

/// Trims before anybody has to go (eviction.trim): tells the programs that listen, and has the file cache of pods over
/// their request taken, in the order in which they would be evicted. That begins while a soft memory threshold's grace
/// period runs, and near a hard one; one at a time. It decides nothing: a pass reads anew, and takes a pod for what is
/// still short. Where pods go already it begins nothing, and stops what is under way. On the reactor, which waits for
/// none of it.
class Trimmer final : public wake::ApproachListener, public PassListener {
 public:
  /// All of these must outlive this.
  struct Parts {
    boost::asio::any_io_executor reactor;
    const core::Synchronizer& policy;
    Usage& usage;
    const RunningPods& pods;
    const node::CgroupHierarchy& hierarchy;
    Clock& clock;
    wake::Wakes& wakes;
    async::Worker& worker;  ///< that may hang, and does nothing urgent
    TrimmedNode& node;
    DecisionLog& log;
    std::string proc = "/proc";
    evict::TrimLimits limits{};
    std::shared_ptr<evict::TrimTools> tools = std::make_shared<evict::TrimTools>();  ///< used on the worker's thread
  };

  /// After a trim that could go on, or sufficed.
  static constexpr core::Duration between_trims = std::chrono::seconds(10);
  /// After one that left nothing to be taken: what pods read again would only be taken again.
  static constexpr core::Duration after_nothing = std::chrono::seconds(60);
  /// Where there was nobody to be trimmed: just after the start no pod is listed yet. A look at all pods takes 3 µs
  /// each.
  static constexpr core::Duration between_looks = std::chrono::seconds(1);
  /// And where a threshold is near, and not so near that anything is to be trimmed. A look at the node takes 30 µs.
  static constexpr core::Duration between_glances = std::chrono::milliseconds(20);
  /// How far the kernel's counts of a node may be behind what was taken from its pods: it adds those up every two
  /// seconds, or once much has changed, and of the latter it can lose sight while they are read (mm/memcontrol.c of
  /// Linux 6.18, seen with every other trim where the node was read all the time).
  static constexpr core::Duration counts_lag = std::chrono::milliseconds(2500);
  /// So many pods are worth a look: a trim has two seconds.
  static constexpr std::size_t most_pods = 32;

  explicit Trimmer(Parts parts) : parts_{std::move(parts)} {}
  Trimmer(const Trimmer&) = delete;
  Trimmer& operator=(const Trimmer&) = delete;
  ~Trimmer();

  void passed(const core::Observations& observations) override;
  void approaches() override;
  [[nodiscard]] bool is_quick() const override { return true; }
  /// What is under way ends as soon as it can, and nothing begins any more. What was taken is told of; waits for
  /// nothing.
  void stop();

 private:
  struct Run;

  [[nodiscard]] bool may_begin() const;
  void begin(const core::TrimGoal& goal);
  [[nodiscard]] evict::TrimPlan plan(const core::TrimGoal& goal) const;
  void ended(const std::shared_ptr<Run>& run);
  [[nodiscard]] boost::asio::awaitable<void> tell_later(std::shared_ptr<Run> run);
  void tell();
  void stop_run();

  Parts parts_;
  std::shared_ptr<Run> run_;  // null: none is under way, and all are told of
  core::Instant next_ = core::Instant::min();
  core::Instant glanced_ = core::Instant::min();
  std::set<std::string, std::less<>> told_;  // what went wrong
  bool stopped_ = false;
};

}  // namespace evictd::agent
