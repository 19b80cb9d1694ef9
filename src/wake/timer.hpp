#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "wake/source.hpp"
#include "wake/wakes.hpp"

namespace evictd::wake {

/// The fallback: begins a pass at every interval, whatever the other sources do. Always on.
class FallbackTimer final : public Source {
 public:
  FallbackTimer(boost::asio::any_io_executor reactor, Wakes& wakes, core::Duration interval);

  void arm(const Arming&) override {}
  [[nodiscard]] std::vector<SourceStatus> status() const override;

 private:
  void wait();

  boost::asio::steady_timer timer_;
  Wakes& wakes_;
  core::Duration interval_;
  std::uint64_t wakes_count_ = 0;
  std::optional<core::Instant> last_wake_;
};

/// Begins a pass at the one time the policy asked for: the end of a grace period or of a transition period.
class Deadline final : public Source {
 public:
  Deadline(boost::asio::any_io_executor reactor, Wakes& wakes);

  /// Replaces the time set before; absent: none.
  void set(std::optional<core::Instant> time);

  void arm(const Arming&) override {}
  [[nodiscard]] std::vector<SourceStatus> status() const override;

 private:
  boost::asio::steady_timer timer_;
  Wakes& wakes_;
  bool set_ = false;
  std::uint64_t wakes_count_ = 0;
  std::optional<core::Instant> last_wake_;
};

}  // namespace evictd::wake
