#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "admission/allocation/resource_allocator.hpp"
#include "agent/clock.hpp"
#include "agent/pod_admission.hpp"
#include "agent/pod_tracker.hpp"
#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/pod.hpp"
#include "cri/client.hpp"
#include "node/kubelet_lookout.hpp"
#include "pods/cri_pods.hpp"

namespace evictd::agent {

/// Has the runtime confine every running container to what admission gave it: its exclusive CPUs and the NUMA nodes of
/// its memory, or else the CPUs that all others share, also where its pod was never admitted. On the reactor.
///
/// What was written is written again only if it becomes something else, whenever the pods or what they have change;
/// what failed is tried again every ten seconds. After a restart everything is written once. Four calls are under way
/// at most, and each has a deadline; a runtime that answers none of them is left alone for the rest of the ten seconds.
/// (kubelet 1.36, cpu_manager.go: reconcileState, which looks every ten seconds only;
/// internal_container_lifecycle_linux.go: PreCreateContainer)
class AllocationEnforcer final : private PodListener {
 public:
  /// The kubelet's cpuManagerReconcilePeriod, by default.
  static constexpr core::Duration reconcile_period = std::chrono::seconds(10);
  /// runc takes some 20 ms of a processor for one, and those of the pods have others to wait for.
  static constexpr std::size_t calls_at_a_time = 4;

  /// All of these must outlive this.
  struct Parts {
    cri::Client& runtime;
    const pods::CriPods& pods;
    PodTracker& tracker;
    const PodAdmission& admission;
    const admission::ResourceAllocator& allocator;
    Clock& clock;
    /// Asked before anything is written; once a kubelet was there nothing is written any more, since it would not write
    /// again what it has written. Null: evictd writes whoever else may.
    node::KubeletLookout* kubelet = nullptr;
  };

  /// To be made after the admission, which hears of pods that are gone before this.
  AllocationEnforcer(boost::asio::any_io_executor reactor, Parts parts);

  /// Begins; once. Until stop().
  void start();
  void stop() { stopping_ = true; }

  /// Containers, or what they were given, may have changed. Waits for nothing.
  void look();

 private:
  /// In the kernel's list format; what is empty is not written.
  struct Cpuset {
    std::string cpus;
    std::string mems;

    [[nodiscard]] bool empty() const { return cpus.empty() && mems.empty(); }
    friend bool operator==(const Cpuset&, const Cpuset&) = default;
  };
  struct Written {
    Cpuset cpuset;
    bool failed = false;
  };
  struct Due {
    std::string container;  // its id
    std::string name;       // "shop/web/main"
    Cpuset cpuset;
    bool is_exclusive = false;
    bool failed = false;  // when it was last tried
  };

  void pods_changed(const core::PodList& /*pods*/) override { look(); }
  void await_starts();
  boost::asio::awaitable<void> reconcile_again_and_again();
  boost::asio::awaitable<void> write_until_all_is_written();
  boost::asio::awaitable<void> write_what_is_due();
  boost::asio::awaitable<void> write(std::span<const Due> containers);
  boost::asio::awaitable<bool> may_write();
  [[nodiscard]] std::vector<Due> find_due();
  [[nodiscard]] static Cpuset cpuset_of(const admission::ContainerAllocation* given, const std::string& shared_cpus);
  static void warn(const Due& container, const Error& error);

  boost::asio::any_io_executor reactor_;
  Parts parts_;
  std::map<std::string, Written, std::less<>> written_;  // by the container's id, of those that run
  std::map<std::string, int, std::less<>> looks_;        // by id, of those that were created: how often they were seen
  bool writing_ = false;
  bool looks_again_ = false;  // something changed since what is due was found
  bool retries_ = false;      // what failed is due as well
  bool paused_ = false;       // until the next reconciliation
  bool stopping_ = false;
};

}  // namespace evictd::agent
