#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <optional>
#include <vector>

#include "core/duration.hpp"
#include "wake/source.hpp"
#include "wake/wakes.hpp"

namespace evictd::wake {

/// Begins a pass at the one time the policy asked for: the end of a grace period or of a transition period.
class Deadline final : public Source {
 public:
  Deadline(const boost::asio::any_io_executor& reactor, Wakes& wakes);

  /// Replaces the time set before; absent: none.
  void set(std::optional<core::Instant> time);

  void arm(const Arming&) override {}
  [[nodiscard]] std::vector<SourceStatus> status() const override;

 private:
  boost::asio::steady_timer timer_;
  Notifier notifier_;
  bool set_ = false;
};

}  // namespace evictd::wake
