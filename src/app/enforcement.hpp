#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <memory>
#include <optional>

#include "admission/allocation/resource_allocator.hpp"
#include "agent/allocation_enforcer.hpp"
#include "agent/clock.hpp"
#include "agent/pod_admission.hpp"
#include "agent/pod_tracker.hpp"
#include "app/configuration.hpp"
#include "app/kubelet_processes.hpp"
#include "cri/client.hpp"
#include "pods/cri_pods.hpp"

namespace evictd::app {

/// That containers are confined to what admission gave them, put together (admission.enforce). On the reactor;
/// processes are looked through beside it.
class Enforcement {
 public:
  /// All of these must outlive this.
  struct Parts {
    cri::Client& runtime;
    const pods::CriPods& pods;
    agent::PodTracker& tracker;
    const agent::PodAdmission& admission;
    agent::Clock& clock;
  };

  /// Null where containers are confined by nobody, as no policy gives them anything, or by somebody else: by the
  /// kubelet, as the configuration shows, or as it says. `allocator`: not null.
  [[nodiscard]] static std::unique_ptr<Enforcement> make(const boost::asio::any_io_executor& reactor,
                                                         const Configuration& configuration,
                                                         std::shared_ptr<const admission::ResourceAllocator> allocator,
                                                         const Parts& parts);
  Enforcement(const Enforcement&) = delete;
  Enforcement& operator=(const Enforcement&) = delete;
  ~Enforcement();

  /// Begins; once. Until stop().
  void start();
  void stop() { enforcer_->stop(); }
  /// What containers were given is something else now.
  void allocations_changed() { enforcer_->look(); }

 private:
  Enforcement() = default;

  std::shared_ptr<const admission::ResourceAllocator> allocator_;
  std::unique_ptr<KubeletProcesses> kubelet_;  // null: it is not looked for
  std::optional<agent::AllocationEnforcer> enforcer_;
};

}  // namespace evictd::app
