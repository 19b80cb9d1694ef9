#pragma once
#include <string>

#include "agent/evidence.hpp"
#include "core/action.hpp"
#include "core/error.hpp"
#include "core/eviction.hpp"
#include "core/observation.hpp"
#include "core/wake.hpp"
#include "evict/eviction_record.hpp"
#include "evict/node_reclaim.hpp"
#include "evict/progress.hpp"
#include "wake/wakes.hpp"

namespace evictd::agent {

struct KernelKill;
struct TrimReport;

/// Where the loop and its evictions record what they decide and what comes of it. Nothing here waits for a disk or for
/// a reader. On the reactor.
class DecisionLog : public wake::SourceListener {
 public:
  DecisionLog() = default;
  DecisionLog(const DecisionLog&) = delete;
  DecisionLog& operator=(const DecisionLog&) = delete;
  ~DecisionLog() override = default;

  virtual void crossed(const core::ReportCrossing& action, const core::Turn& turn) = 0;
  virtual void conditions(const core::ReportConditions& action, const core::Turn& turn) = 0;
  virtual void no_victim(const core::NoVictim& action, const core::Turn& turn) = 0;
  virtual void rate_limited(const core::RateLimited& action, const core::Turn& turn) = 0;
  virtual void recovered(const core::Recovered& action, const core::Turn& turn) = 0;
  virtual void reclaimed(const core::ReclaimNode& action, const evict::ReclaimResult& result,
                         const core::Observations& before, const core::Observations& after, const core::Turn& turn) = 0;

  /// Before the kill. The record's id ties the eviction's later events to this one.
  [[nodiscard]] virtual evict::EvictionRecord intended(core::Eviction eviction, const core::Turn& turn,
                                                       bool dry_run) = 0;
  /// Makes what is told of a shortage and of this eviction, and tells nobody. Afterwards the code for it is in memory,
  /// and what libraries set up at its first use is set up.
  virtual void rehearse(const evict::EvictionRecord& record) = 0;
  /// A step of the eviction; its time is noted in the record.
  virtual void progress(evict::EvictionRecord& record, const evict::Progress& progress) = 0;
  /// What is known of a pod that was killed for memory; what it held is noted in the record.
  virtual void explained(evict::EvictionRecord& record, const Evidence& evidence) = 0;
  /// The pod was gone before it could be stopped, or the like.
  virtual void failed(const evict::EvictionRecord& record, const Error& error) = 0;

  /// The kernel's OOM killer killed in a pod.
  virtual void kernel_oom(const KernelKill& kill) = 0;
  virtual void trimmed(const TrimReport& report) = 0;
};

}  // namespace evictd::agent
