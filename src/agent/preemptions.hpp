#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <memory>
#include <string_view>

#include "agent/clock.hpp"
#include "agent/evictions.hpp"
#include "core/pod.hpp"

namespace evictd::agent {

/// The pods that go so that others may run. The end of each is waited for, but no longer than a kubelet waits for a pod
/// that it kills (core::kill_timeout); a pod that needs longer still ends. On the reactor.
class Preemptions {
 public:
  /// All of these must outlive this.
  struct Parts {
    boost::asio::any_io_executor reactor;
    Evictions& evictions;
    Clock& clock;
  };

  /// `ended` is called whenever a pod is not waited for any more, also within begin().
  Preemptions(Parts parts, std::function<void()> ended);

  /// Ends the pod within its own grace period. One of which nothing is known any more has ended at once, and so has, in
  /// a dry run, every pod.
  void begin(const core::PodPtr& victim);

  [[nodiscard]] bool is_awaited(std::string_view uid) const;
  [[nodiscard]] bool any_awaited() const;

 private:
  struct Awaited;

  Parts parts_;
  std::shared_ptr<Awaited> awaited_;  // callbacks may come when this is gone
};

}  // namespace evictd::agent
