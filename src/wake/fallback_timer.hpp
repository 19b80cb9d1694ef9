#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <random>
#include <string_view>
#include <vector>

#include "core/duration.hpp"
#include "wake/source.hpp"
#include "wake/wakes.hpp"

namespace evictd::wake {

/// The fallback: begins a pass at every interval, whatever the other sources do. Always on, and the measure of the
/// others: what it is the first to see, they missed.
class FallbackTimer final : public Source {
 public:
  /// Each wait is shorter than `interval` by up to a tenth, so that many nodes do not look at their runtimes at once,
  /// nor one node always in step with something else.
  FallbackTimer(const boost::asio::any_io_executor& reactor, Wakes& wakes, core::Duration interval);

  /// A threshold was crossed, and no notifier had reported it before this timer.
  void count_missed() { ++missed_; }

  void arm(const Arming&) override {}
  [[nodiscard]] std::vector<SourceStatus> status() const override;

 private:
  void wait();

  boost::asio::steady_timer timer_;
  Notifier notifier_;
  core::Duration interval_;
  std::minstd_rand random_{std::random_device{}()};
  std::uint64_t missed_ = 0;
};

}  // namespace evictd::wake
