#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "agent/clock.hpp"
#include "agent/evictions.hpp"
#include "agent/pod_tracker.hpp"
#include "core/duration.hpp"
#include "core/pod.hpp"

namespace evictd::agent {

/// The pods that go so that others may run. The end of each is waited for, but no longer than a kubelet waits for a pod
/// that it kills (core::kill_timeout); a pod that needs longer still ends. One that was admitted and that no list names
/// yet is on its way: it ends when it has come, however late, since a kubelet would never start it. On the reactor.
class Preemptions final : private PodListener {
 public:
  /// All of these must outlive this.
  struct Parts {
    boost::asio::any_io_executor reactor;
    PodTracker& pods;
    Evictions& evictions;
    Clock& clock;
  };

  /// `ended` is called whenever a pod is not waited for any more, also within begin().
  Preemptions(Parts parts, std::function<void()> ended);

  /// Ends the pod within its own grace period. In a dry run every pod has ended at once. `was_told`: whoever asked to
  /// have it admitted knows that it is. One that is not there, and of which nobody was told yet, is not waited for: it
  /// may never come, and ends if it does.
  void begin(const core::PodPtr& victim, bool was_told = true);
  /// The pod does not come after all, or was admitted again: it may run, and is not waited for.
  void forget(const std::string& uid);

  [[nodiscard]] bool is_awaited(std::string_view uid) const;
  [[nodiscard]] bool any_awaited() const;

 private:
  struct Awaited;
  /// A victim that is on its way.
  struct Coming {
    core::PodPtr pod;
    core::Instant until;  ///< later than that it comes anew
  };

  void pods_changed(const core::PodList& pods) override;
  void displace(const core::PodPtr& pod, const std::string& victim);

  Parts parts_;
  std::map<std::string, Coming, std::less<>> coming_;  // by uid, or by name where a pod was admitted without one
  std::shared_ptr<Awaited> awaited_;                   // callbacks may come when this is gone
};

}  // namespace evictd::agent
