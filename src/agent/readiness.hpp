#pragma once
#include <chrono>
#include <vector>

#include "agent/black_box.hpp"
#include "agent/clock.hpp"
#include "agent/decision_log.hpp"
#include "agent/pod_tracker.hpp"
#include "agent/running_pods.hpp"
#include "agent/usage.hpp"
#include "core/duration.hpp"
#include "core/pod.hpp"
#include "core/synchronizer.hpp"
#include "evict/ready_strike.hpp"
#include "pods/runtime_pod.hpp"
#include "state/state_saver.hpp"
#include "wake/sampler.hpp"

namespace evictd::agent {

/// Makes ready for a shortage of memory before there is one: chooses the pods that would go first, and has strikes at
/// them prepared. Near a threshold it keeps their numbers fresh and rehearses. It decides nothing: a pass reads, ranks
/// and checks anew. On the reactor.
class Readiness final : public PodListener, public wake::ApproachListener {
 public:
  /// All of these must outlive this.
  struct Parts {
    const core::Synchronizer& policy;
    Usage& usage;
    const RunningPods& pods;
    evict::StrikePreparation& strike;
    DecisionLog& log;
    state::StateSaver& state;
    const Clock& clock;
    BlackBox* black_box = nullptr;  ///< null: nobody keeps who held what
  };

  /// However often it is told that a threshold is near. What looking at all pods takes (3 µs each) is worth no more: a
  /// hog that passes others within a second is found by reading those as well.
  static constexpr core::Duration between_looks = std::chrono::seconds(1);
  static constexpr core::Duration between_rehearsals = std::chrono::seconds(10);

  explicit Readiness(Parts parts) : parts_{parts} {}

  /// Chooses by what the pods held when they were listed. Of the first ones it rehearses what is told of a kill.
  void pods_changed(const core::PodList& pods) override;
  /// Looks at the pods, chooses anew, and may rehearse: what a pass would read is read, what it would tell and save is
  /// made, and nobody is signalled or told.
  void approaches() override;

 private:
  using Pods = std::vector<pods::RuntimePodPtr>;

  Pods prepare_strike(const PodUsages& usage);
  void rehearse();
  void rehearse_telling(const pods::RuntimePodPtr& victim);

  Parts parts_;
  core::Instant looked_ = core::Instant::min();
  core::Instant rehearsed_ = core::Instant::min();
  bool told_ = false;  // it was rehearsed once
};

}  // namespace evictd::agent
