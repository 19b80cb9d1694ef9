#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/clock.hpp"
#include "agent/kill_order.hpp"
#include "agent/running_pods.hpp"
#include "agent/usage.hpp"
#include "async/worker.hpp"
#include "core/duration.hpp"
#include "core/synchronizer.hpp"
#include "evict/oom_scores.hpp"
#include "wake/sampler.hpp"
#include "wake/source.hpp"

namespace evictd::agent {

/// Has the kernel's OOM killer take the pods in evictd's order while a threshold of memory is near, and only then
/// (evict/oom_scores.hpp). It is a source for its line in the status alone: it wakes nobody. On the reactor; processes
/// are looked at and written to by a worker.
class OomSteering final : public wake::Source, public wake::ApproachListener, public KillOrder {
 public:
  /// `policy`, `usage`, `pods` and `clock` outlive the reactor's last handler.
  struct Parts {
    const core::Synchronizer& policy;
    Usage& usage;
    const RunningPods& pods;
    const Clock& clock;
    std::unique_ptr<async::Worker> worker;
    std::shared_ptr<evict::OomScores> scores;
    std::int64_t capacity = 0;  ///< bytes of memory of the node, > 0
    /// Decisions are carried out, and not only reported; until they are, the kernel's order stays as it is.
    std::function<bool()> acts;
    bool prepares = false;  ///< nobody else has the usages made ready as a threshold comes near
    /// After it was near: one that is crossed again and again is not written to each time.
    core::Duration lingers = std::chrono::seconds(5);
  };

  static constexpr core::Duration between_looks = std::chrono::seconds(1);

  /// What an earlier evictd raised, and the start could not give back, is given back as its own is.
  OomSteering(const boost::asio::any_io_executor& reactor, Parts parts);
  /// Gives back what is raised.
  ~OomSteering() override;

  void approaches() override;
  void recedes() override;
  [[nodiscard]] bool is_quick() const override { return true; }

  /// When this looked last; nobody while no threshold is near.
  [[nodiscard]] std::string likeliest() const override { return near_ || raised_ ? likeliest_ : std::string{}; }

  void arm(const wake::Arming&) override {}
  [[nodiscard]] std::vector<wake::SourceStatus> status() const override;

 private:
  [[nodiscard]] evict::OomPlan plan();
  void restore();
  void done(const evict::OomOutcome& outcome, bool raised);

  Parts parts_;
  boost::asio::steady_timer timer_;
  core::Instant looked_ = core::Instant::min();
  bool near_ = false;
  bool raised_;  // something may be
  bool busy_ = false;
  std::string likeliest_;
  std::uint64_t written_ = 0;
  std::string refusal_;  // why not all is written
};

}  // namespace evictd::agent
