#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/wake.hpp"

namespace evictd::wake {

using Reason = core::WakeReason;
using core::Wake;

/// Hears how sources do. On the reactor.
class SourceListener {
 public:
  virtual ~SourceListener() = default;
  /// It cannot do its work any more, or not as it should. Reported once by the source; the others carry on.
  virtual void source_degraded(const std::string& source, const Error& error) = 0;
  /// Something was wrong with it and is over: the registration was made anew, the loop goes on. Reported each time.
  virtual void source_recovered(const std::string& source, const std::string& what) = 0;
};

/// Where all sources wake the one loop. On the reactor's thread only.
class Wakes {
 public:
  explicit Wakes(const boost::asio::any_io_executor& reactor);

  /// Begins a pass as soon as the loop is free; until then reasons gather.
  void notify(Reason reason);

  /// Waits for the next reason and takes all there are.
  [[nodiscard]] boost::asio::awaitable<Wake> next();

  /// See SourceListener.
  void degraded(const std::string& source, const Error& error);
  void recovered(const std::string& source, const std::string& what) const;
  /// Passes these on from now on, and at once what was degraded before there was a listener: a source that failed as it
  /// was made. The listener outlives this.
  void listen(SourceListener& listener);

 private:
  boost::asio::steady_timer pending_signal_;  // never expires: cancelled to say that something is pending
  std::vector<Reason> pending_;
  SourceListener* listener_ = nullptr;
  std::vector<std::pair<std::string, Error>> unheard_;
};

}  // namespace evictd::wake
