#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/wake.hpp"

namespace evictd::wake {

using Reason = core::WakeReason;
using core::Wake;

/// Where all sources wake the one loop. On the reactor's thread only.
class Wakes {
 public:
  using DegradedHandler = std::function<void(const std::string& source, const Error& error)>;
  using RecoveredHandler = std::function<void(const std::string& source, const std::string& what)>;

  explicit Wakes(const boost::asio::any_io_executor& reactor);

  /// Begins a pass as soon as the loop is free; until then reasons gather.
  void notify(Reason reason);

  /// Waits for the next reason and takes all there are.
  [[nodiscard]] boost::asio::awaitable<Wake> next();

  /// A source cannot do its work any more, or not as it should. Reported once by the source; the others carry on.
  void degraded(const std::string& source, const Error& error);
  /// What was reported before there was a listener, by a source that failed as it was made, is passed on at once.
  void on_degraded(DegradedHandler handler);
  /// Something was wrong with a source and is over. Reported each time.
  void recovered(const std::string& source, const std::string& what) const;
  void on_recovered(RecoveredHandler handler) { recovered_ = std::move(handler); }

 private:
  boost::asio::steady_timer pending_signal_;  // never expires: cancelled to say that something is pending
  std::vector<Reason> pending_;
  DegradedHandler degraded_;
  std::vector<std::pair<std::string, Error>> unheard_;
  RecoveredHandler recovered_;
};

}  // namespace evictd::wake
