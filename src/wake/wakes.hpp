#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/wake.hpp"
#include "wake/source.hpp"

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

/// Why sources register with the kernel anew.
inline constexpr std::string_view cgroup_made_anew = "its cgroup was removed and made anew";
inline constexpr std::string_view self_test_failed = "a self-test failed";

/// A source's way to the loop: says what it saw and counts it, and says once what went wrong. On the reactor.
class Notifier {
 public:
  /// `source`: what events give as the cause of a pass.
  Notifier(Wakes& wakes, core::WakeSource source) : wakes_{wakes}, source_{source} {}

  /// Begins a pass as soon as the loop is free. `detail`: a few words for people, the same for the same thing.
  void wake(std::string detail);

  /// The source cannot do its work, or not all of it. The same failure is not reported twice until works().
  void failed(const Error& error);
  void works() { failure_.clear(); }
  [[nodiscard]] bool has_failed() const { return !failure_.empty(); }

  /// What was armed in the kernel was armed anew, for another level or after it was lost.
  void rearmed() { ++rearms_; }
  /// The registration was lost, or had stopped reporting, and was made anew. Reported each time.
  void re_registered(std::string_view why);
  /// It should have fired, and did not.
  void missed() { ++missed_; }
  /// Something was wrong that is over. Reported each time.
  void recovered(const std::string& what) { wakes_.recovered(std::string(core::name(source_)), what); }

  /// An entry of the source's status; `state` makes way for a failure.
  [[nodiscard]] SourceStatus status(std::string name, std::string state) const;

 private:
  Wakes& wakes_;
  core::WakeSource source_;
  std::string failure_;  // empty: all is well
  std::uint64_t count_ = 0;
  std::uint64_t rearms_ = 0;
  std::uint64_t re_registrations_ = 0;
  std::uint64_t missed_ = 0;
  std::optional<core::Instant> last_;
};

}  // namespace evictd::wake
