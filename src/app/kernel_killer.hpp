#pragma once
#include <memory>

#include "agent/clock.hpp"
#include "agent/eviction_records.hpp"
#include "agent/evictions.hpp"
#include "agent/kernel_oom.hpp"
#include "agent/oom_groups.hpp"
#include "agent/oom_steering.hpp"
#include "agent/pod_tracker.hpp"
#include "agent/recorder.hpp"
#include "agent/usage.hpp"
#include "app/sources.hpp"
#include "config/agent_configuration.hpp"
#include "core/synchronizer.hpp"
#include "evict/oom_scores.hpp"
#include "wake/sampler.hpp"

namespace evictd::app {

/// What evictd has to do with the kernel's OOM killer: it tells of its kills, and has it follow the ranking. On the
/// reactor.
class KernelKiller {
 public:
  /// All of these outlive this, and the reactor's last handler.
  struct Parts {
    const core::Synchronizer& policy;
    agent::Usage& usage;
    agent::PodTracker& pods;
    const agent::EvictionRecords& records;
    const agent::Evictions& evictions;
    agent::Recorder& recorder;
    const agent::Clock& clock;
    const Measured& node;
    std::int64_t capacity = 0;    ///< bytes of memory of the node
    bool dry_run = false;         ///< it only tells
    bool others_prepare = false;  ///< see agent::OomSteering::Parts
  };

  KernelKiller(const SourceMaker& sources, const Parts& parts);

  /// Is told that memory may soon be short, after those who make usages ready. Null: the kernel's killer is left alone.
  [[nodiscard]] wake::ApproachListener* steering() const { return steering_; }

 private:
  void tell_of_kills(const SourceMaker& sources, const Parts& parts);
  void steer(const SourceMaker& sources, const Parts& parts);

  std::unique_ptr<agent::KernelOom> kills_;
  std::unique_ptr<agent::OomGroups> groups_;
  agent::OomSteering* steering_ = nullptr;  // a source
};

/// What is noted of processes of which the oom_score_adj is raised, to give it back.
[[nodiscard]] evict::OomScores::Places oom_score_places(const config::AgentConfiguration& settings,
                                                        std::int64_t capacity = 0);

}  // namespace evictd::app
