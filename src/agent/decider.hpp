#pragma once
#include <optional>
#include <utility>

#include "agent/clock.hpp"
#include "agent/decisions.hpp"
#include "core/duration.hpp"
#include "core/event.hpp"
#include "core/eviction_settings.hpp"
#include "core/synchronizer.hpp"
#include "wake/deadline.hpp"

namespace evictd::agent {

/// Owns the state machine: the parts tell it what they learn, and the loop drives its passes. It survives a restart. On
/// the reactor.
class Decider final : public Decisions {
 public:
  /// The clock and the deadline, at which the machine wants a pass, must outlive this.
  Decider(core::EvictionPolicy policy, const core::SynchronizerOptions& options, const Clock& clock,
          wake::Deadline& deadline)
      : clock_{clock}, deadline_{deadline}, synchronizer_{std::move(policy), options} {}

  void tell(const core::Event& event, core::Turn& /*turn*/) override {
    if (const auto wake_at = synchronizer_.tell(event, clock_.now())) deadline_.set(wake_at->time);
  }
  [[nodiscard]] core::Synchronizer& synchronizer() { return synchronizer_; }
  [[nodiscard]] const core::Synchronizer& synchronizer() const { return synchronizer_; }

 private:
  const Clock& clock_;
  wake::Deadline& deadline_;
  core::Synchronizer synchronizer_;
};

}  // namespace evictd::agent
