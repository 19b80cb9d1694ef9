#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <vector>

#include "core/duration.hpp"
#include "wake/sampler.hpp"
#include "wake/source.hpp"

namespace evictd::wake {

/// Tells that a threshold on memory is near where the sampler sleeps because the kernel guards it (cgroup v1): once a
/// second, from the pass that finds it near, or met, to the one that finds it far, or has pods go for a hard one. It
/// wakes no pass, and on a node that is far from its thresholds nothing. It stands between the sampler and the
/// listener, which hears one story of both: that it is near as soon as one of them says so, and that it is so no more
/// once neither does, and no pods go.
class ApproachTimer final : public Source, public ApproachListener {
 public:
  static constexpr core::Duration between = std::chrono::seconds(1);
  /// Bytes above a threshold, or as much again as the threshold where that is more: a pod that takes 25 MiB a second is
  /// seen ten times on its way, and most nodes are further away most of the time.
  static constexpr std::int64_t near = std::int64_t{256} << 20;

  /// The listener outlives this.
  ApproachTimer(const boost::asio::any_io_executor& reactor, ApproachListener& listener)
      : timer_{reactor}, listener_{listener} {}

  void arm(const Arming& arming) override;
  /// What the sampler says.
  void approaches() override;
  void recedes() override;
  [[nodiscard]] bool is_quick() const override { return listener_.is_quick(); }
  /// It is no source of wake-ups.
  [[nodiscard]] std::vector<SourceStatus> status() const override { return {}; }

 private:
  void wait();
  void tell();
  void recede_if_far();

  boost::asio::steady_timer timer_;
  ApproachListener& listener_;
  bool is_near_ = false;  // by the last pass, as the next
  bool pods_go_ = false;
  bool sampler_is_near_ = false;
  bool told_ = false;
};

}  // namespace evictd::wake
