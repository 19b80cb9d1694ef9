#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "agent/condition_times.hpp"
#include "agent/fill_rates.hpp"
#include "agent/memory_history.hpp"
#include "agent/observer.hpp"
#include "core/duration.hpp"
#include "core/observation.hpp"
#include "core/pressure.hpp"
#include "core/signal.hpp"
#include "core/threshold.hpp"
#include "host/systemd.hpp"
#include "kube/reporter.hpp"
#include "node/node_memory.hpp"
#include "state/state_saver.hpp"

namespace evictd::agent {

/// Is told what each pass saw, once it is over.
class PassListener {
 public:
  virtual void passed(const core::Observations& observations) = 0;

 protected:
  ~PassListener() = default;
};

/// How the node is and was, for whoever is to be told of it: systemd, the cluster, the API, and the evictd that comes
/// after this one. Fed by the passes. Nothing here waits for a peer. On the reactor.
class NodeReports {
 public:
  /// All of these must outlive this.
  struct Parts {
    Observer& observer;
    host::ServiceManager& service;
    state::StateSaver& state;
    ConditionTimes& conditions;
    kube::Reporter* cluster = nullptr;  ///< null: no API server is told anything
  };

  explicit NodeReports(Parts parts) : parts_{parts} {}

  /// Must outlive the last pass.
  void tell(PassListener& listener) { listeners_.push_back(&listener); }

  /// While evictd only watches, no pod is refused for pressure, and the API server is told of none: by which thresholds
  /// there is one is not known.
  void only_watch(bool only_watch);

  void pass_began() { ++passes_; }
  /// The node was read for the pass.
  void observed(const node::NodeMemoryReading& reading, core::Instant now);
  /// Memory was read again in the middle of the pass.
  void observed(const core::Observations& observations, core::Instant now) { memory_.observed(observations, now); }
  /// These hold now.
  void conditions_changed(const core::NodeConditions& conditions, core::Instant now);
  /// A pass has to do something about the threshold, and maybe nothing can be done.
  void threshold_met(const core::Threshold& threshold) const;
  /// An eviction for memory.available gave its first memory back (MemoryHistory::released()).
  void released(core::Duration since_wake, std::int64_t threshold) { memory_.released(since_wake, threshold); }

  /// What a pass leaves behind.
  struct Passed {
    const core::Observations& observations;
    const core::NodeConditions& conditions;
    std::uint64_t evictions = 0;  ///< since the start
    std::size_t under_way = 0;
  };
  /// Tells systemd, and with the first pass that evictd is ready; then has the state saved, and tells who listens.
  void pass_ended(const Passed& passed, core::Instant now);

  /// The node's counters as they are now (30 µs); those of the last pass where they cannot be read. No pass begins
  /// because of them.
  [[nodiscard]] core::Observations look(core::Instant now);
  /// Of the last pass; absent where the signal was not measured.
  [[nodiscard]] std::optional<std::int64_t> capacity(core::Signal signal) const;
  [[nodiscard]] std::uint64_t passes() const { return passes_; }
  /// When the condition changed last; absent: it never did.
  [[nodiscard]] std::optional<core::Instant> since(core::NodeCondition condition) const {
    return parts_.conditions.since(condition);
  }
  /// Which conditions the node has for others: those who admit pods, the API server.
  [[nodiscard]] core::NodeConditions conditions() const {
    return only_watch_ ? core::NodeConditions{} : parts_.conditions.conditions();
  }
  /// What thresholds can be advised by.
  [[nodiscard]] const MemoryHistory& memory_history() const { return memory_; }
  [[nodiscard]] const FillRates& fill_rates() const { return rates_; }

 private:
  void tell_cluster() const;

  Parts parts_;
  std::vector<PassListener*> listeners_;
  core::Observations last_;  // of the last pass
  MemoryHistory memory_;
  FillRates rates_;
  std::uint64_t passes_ = 0;
  bool ready_ = false;
  bool only_watch_ = false;
};

}  // namespace evictd::agent
