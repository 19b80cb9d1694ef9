#pragma once
#include <boost/asio/awaitable.hpp>
#include <string>

#include "async/deadline_thread.hpp"
#include "core/duration.hpp"
#include "node/cgroup.hpp"
#include "node/kubelet_lookout.hpp"
#include "os/file_error.hpp"
#include "pods/runtime_pod.hpp"

namespace evictd::evict {

/// The last of an evicted pod: its own cgroup. Where a kubelet runs, that removes it with its housekeeping (kubelet
/// 1.36, PodResourcesAreReclaimed counts it); where none does nobody would, since the runtime removes what it made
/// below it alone: then it is removed here (pod_cgroup_removal.hpp). A slice without a kubelet is left to systemd.
class PodCgroupEnd {
 public:
  /// `hierarchy` and `kubelet` outlive this.
  struct Parts {
    const node::CgroupHierarchy& hierarchy;
    std::string pods_cgroup;  ///< only what lies below it is removed
    node::KubeletLookout& kubelet;
  };

  explicit PodCgroupEnd(Parts parts);

  /// Waits for the end of this pod's cgroup. The pod is gone but for that. What is still there when the time is over,
  /// for people: "the pod's cgroup"; empty: it is removed, or nobody is going to, or somebody has started the pod again
  /// in it. One that may not be read or removed is logged and not waited for: nothing that the node is short of depends
  /// on it any more. On the reactor, which outlives the wait, as this does.
  [[nodiscard]] boost::asio::awaitable<std::string> awaited(pods::RuntimePodPtr pod, core::Instant give_up);

 private:
  boost::asio::awaitable<os::FileResult<bool>> is_over(std::string cgroup, bool remove, core::Instant give_up);

  Parts parts_;
  async::DeadlineThread remover_{"removing a pod's cgroup"};
};

}  // namespace evictd::evict
