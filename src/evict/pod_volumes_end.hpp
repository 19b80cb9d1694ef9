#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "async/deadline_thread.hpp"
#include "core/duration.hpp"
#include "evict/tree_removal.hpp"
#include "node/cgroup.hpp"
#include "node/kubelet_lookout.hpp"
#include "pods/runtime_pod.hpp"

namespace evictd::evict {

/// Who removes an evicted pod's emptyDirs (eviction.removeVolumes).
enum class RemoveVolumes : std::uint8_t {
  where_no_kubelet_runs,  ///< a kubelet removes those of its pods once it has unmounted them
  always,
  never,
};

/// The emptyDirs of a pod that is gone: what it wrote there comes back with them. Each is removed (pod_volumes.hpp)
/// unless a kubelet does it, or somebody has started the pod again; both are looked for again and again.
class PodVolumesEnd {
 public:
  /// For how long a removal goes on that is not over when the cleanup is.
  static constexpr core::Duration longest_removal = std::chrono::minutes(10);

  /// `hierarchy` and `kubelet` outlive this.
  struct Parts {
    const node::CgroupHierarchy& hierarchy;  ///< tells whether the pod runs again
    std::filesystem::path kubelet_root;
    RemoveVolumes mode;
    node::KubeletLookout& kubelet;
    /// Before each piece it is looked whose the volumes are now. The end of evictd waits for one that is under way.
    core::Duration longest_piece = std::chrono::milliseconds(250);
  };

  PodVolumesEnd(boost::asio::any_io_executor reactor, Parts parts);
  PodVolumesEnd(const PodVolumesEnd&) = delete;
  PodVolumesEnd& operator=(const PodVolumesEnd&) = delete;
  /// Logs what it leaves behind.
  ~PodVolumesEnd();

  /// Waits for the end of this pod's emptyDirs; none of its processes is left. What is still there when the time is
  /// over, for people: "the pod's emptyDirs", whose removal goes on, unless the pod has no cgroup to itself by which it
  /// could be seen to run again; empty: they are removed, or evictd is not going to. What may not be removed is logged
  /// and not waited for. On the reactor, which outlives the wait and the removal, as this does.
  [[nodiscard]] boost::asio::awaitable<std::string> awaited(pods::RuntimePodPtr pod, core::Instant give_up);

 private:
  enum class Outcome : std::uint8_t { over, late };
  struct Queue;

  boost::asio::awaitable<Outcome> remove(pods::RuntimePodPtr pod, core::Instant give_up);
  boost::asio::awaitable<std::optional<Removed>> remove_a_piece(pods::RuntimePodPtr pod, core::Instant give_up);
  boost::asio::awaitable<std::optional<bool>> is_somebody_elses(const pods::RuntimePod& pod, core::Instant give_up);
  boost::asio::awaitable<bool> take_turn(core::Instant give_up);
  boost::asio::awaitable<void> go_on(pods::RuntimePodPtr pod, core::Instant give_up);
  [[nodiscard]] bool runs_again(const pods::RuntimePod& pod) const;

  boost::asio::any_io_executor reactor_;
  Parts parts_;
  std::set<std::string> going_on_;  // keys of pods, for the log
  std::shared_ptr<Queue> queue_;    // the reactor's alone
  async::DeadlineThread remover_{"removing a pod's emptyDirs"};
};

}  // namespace evictd::evict
