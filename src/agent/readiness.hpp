#pragma once
#include "agent/clock.hpp"
#include "agent/pod_tracker.hpp"
#include "agent/running_pods.hpp"
#include "agent/usage.hpp"
#include "core/pod.hpp"
#include "core/synchronizer.hpp"
#include "evict/ready_strike.hpp"

namespace evictd::agent {

/// Makes ready for a shortage of memory before there is one: chooses the pods that would go first, and has strikes at
/// them prepared. It decides nothing: a pass reads, ranks and checks anew. On the reactor.
class Readiness final : public PodListener {
 public:
  /// All of these must outlive this.
  struct Parts {
    const core::Synchronizer& policy;
    Usage& usage;
    const RunningPods& pods;
    evict::StrikePreparation& strike;
    const Clock& clock;
  };

  explicit Readiness(Parts parts) : parts_{parts} {}

  /// Chooses by what the pods held when they were listed.
  void pods_changed(const core::PodList& pods) override;

 private:
  void prepare_strike(const PodUsages& usage);

  Parts parts_;
};

}  // namespace evictd::agent
