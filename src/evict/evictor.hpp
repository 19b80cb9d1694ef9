#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <string>

#include "core/duration.hpp"
#include "cri/client.hpp"
#include "evict/progress.hpp"
#include "node/pod_cgroups.hpp"
#include "pods/runtime_pod.hpp"

namespace evictd::evict {

struct EvictorOptions {
  core::Duration stop_timeout = std::chrono::seconds(2);      ///< how long a CRI stop may take beyond the grace period
  core::Duration cleanup_timeout = std::chrono::seconds(30);  ///< how long to wait for the pod to be gone
};

/// What becomes of the pod's containers once they are stopped.
enum class Afterwards : std::uint8_t {
  keep,    ///< whoever started the pod looks after them: a kubelet reads their status
  remove,  ///< their writable layers are what the node is short of
};

/// Carries out the decision that a pod must go, and watches until it is gone. Never blocks the reactor.
class Evictor {
 public:
  Evictor(boost::asio::any_io_executor reactor, cri::Client& runtime, node::PodCgroups& cgroups,
          EvictorOptions options);

  /// StopContainer for all containers side by side, then StopPodSandbox; where a call fails or passes its deadline,
  /// SIGKILL to the pod's processes. Reports every step as it happens, CleanupEnded last, once.
  [[nodiscard]] boost::asio::awaitable<void> run(pods::RuntimePodPtr pod, core::Duration grace_period,
                                                 Afterwards afterwards, Report report);

 private:
  struct Eviction;

  boost::asio::awaitable<void> stop(Eviction& eviction);
  boost::asio::awaitable<void> stop_container(Eviction& eviction, std::string id);
  boost::asio::awaitable<void> watch_memory(Eviction& eviction);
  boost::asio::awaitable<void> wait_for_cleanup(Eviction& eviction);
  boost::asio::awaitable<std::string> what_the_runtime_has(const pods::RuntimePod& pod);
  boost::asio::awaitable<void> sleep(core::Duration duration);
  void kill_directly(Eviction& eviction);

  boost::asio::any_io_executor reactor_;
  cri::Client& runtime_;
  node::PodCgroups& cgroups_;
  EvictorOptions options_;
};

}  // namespace evictd::evict
