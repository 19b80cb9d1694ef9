#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <string>
#include <vector>

#include "core/duration.hpp"
#include "cri/client.hpp"
#include "cri/reply.hpp"
#include "evict/progress.hpp"
#include "evict/stop_order.hpp"
#include "node/cgroup.hpp"
#include "pods/runtime_pod.hpp"

namespace evictd::evict {

/// What is reported of a call to the runtime that gave this error: one that is late may still be carried out.
[[nodiscard]] Progress without_answer(std::string call, cri::CallError error);

/// Has the runtime stop the containers of one pod, and spends the time that the pod is given as a kubelet 1.36 does
/// (killContainer): the hooks of all containers at once, for no longer than the grace period; then each one's turn
/// (evict/stop_order.hpp), which it waits for as long; then StopContainer with what is left, 2 s at least. Without a
/// grace period there is nothing but StopContainer. On the reactor.
class ContainerStop {
 public:
  /// All of these must outlive this.
  struct Parts {
    boost::asio::any_io_executor reactor;
    cri::Client& runtime;
    const node::CgroupHierarchy& hierarchy;
  };
  struct Options {
    core::Duration grace_period;
    core::Duration stop_timeout;  ///< how long StopContainer may take beyond the time that it gives
    bool runs_hooks = true;
  };

  ContainerStop(const Parts& parts, pods::RuntimePodPtr pod, Options options);

  struct Outcome {
    bool any = false;     ///< a container was there to be stopped
    bool failed = false;  ///< the runtime has not stopped them all, which was reported
  };
  /// Once. A hook that fails or does not end in time is logged, and costs its own container's time only. It is broken
  /// off within 100 ms when its container has no process left.
  boost::asio::awaitable<Outcome> run(const Report& report);

  /// Another eviction of the pod takes over: hooks are broken off within 100 ms, nothing more is waited for, and no
  /// container is told to stop that has not been.
  void give_up();
  [[nodiscard]] bool is_given_up() const { return given_up_; }
  /// Whether a hook is running: its container may have nothing to do meanwhile.
  [[nodiscard]] bool runs_hooks() const { return hooks_ > 0; }

 private:
  boost::asio::awaitable<void> stop(std::size_t place, const Report& report);
  boost::asio::awaitable<void> run_hook(const StopTurn& turn);
  boost::asio::awaitable<void> hook_is_over(const pods::RuntimeContainer& container) const;
  boost::asio::awaitable<void> wait_for_turn(const StopTurn& turn);
  boost::asio::awaitable<void> stop_container(std::string id, const Report& report);

  Parts parts_;
  pods::RuntimePodPtr pod_;
  Options options_;
  std::vector<StopTurn> turns_;  // of pod_
  std::vector<bool> ended_;      // by their places
  core::Instant begin_;
  core::Instant end_;                  // of the grace period
  boost::asio::steady_timer changed_;  // is cancelled whenever one has ended
  int hooks_ = 0;                      // that run
  bool failed_ = false;
  bool given_up_ = false;
};

}  // namespace evictd::evict
