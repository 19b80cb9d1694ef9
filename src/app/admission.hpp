#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "admission/allocation/resource_allocator.hpp"
#include "admission/chain.hpp"
#include "admission/node_snapshot.hpp"
#include "admission/pod_allocation.hpp"
#include "agent/clock.hpp"
#include "agent/evictions.hpp"
#include "agent/node_reports.hpp"
#include "agent/node_shutdown.hpp"
#include "agent/pod_admission.hpp"
#include "agent/pod_tracker.hpp"
#include "agent/recorder.hpp"
#include "api/admission_requests.hpp"
#include "app/configuration.hpp"
#include "app/device_plugins.hpp"
#include "app/enforcement.hpp"
#include "app/node_facts.hpp"
#include "app/pod_sources.hpp"
#include "async/deadline_thread.hpp"
#include "async/latest_only.hpp"
#include "core/error.hpp"
#include "cri/client.hpp"
#include "node/allocation_store.hpp"
#include "pods/cri_pods.hpp"

namespace evictd::app {

/// What admission begins with: the chain, and what pods were given before a restart. It is read before anything of the
/// node is touched, for it may be wrong.
struct PreparedAdmission {
  /// What pods were given, in a file. Shared with the thread that writes it.
  struct Store {
    admission::ResourceAllocator allocator;
    node::AllocationStore file;
  };
  admission::Chain chain;
  std::shared_ptr<Store> store;
  admission::Allocations restored;
  admission::Coming coming;                ///< of those that were given something
  std::set<std::string> plugin_resources;  ///< that device plugins served
};

/// Error: the configuration asks for what cannot be, or what the state file has does not fit it.
[[nodiscard]] Result<PreparedAdmission> prepare_admission(const Configuration& configuration);

/// Where the kubelet's configuration asks for CPUs, memory or a topology in a way that evictd does not know, such as an
/// option of a newer kubelet, takes these policies out of `configuration.kubelet` and says why in `no_allocation`: a
/// node is guarded all the same. Reads the machine's topology. What is wrong with evictd's own keys stays.
void leave_out_impossible_allocation(Configuration& configuration);

/// Has admission give no CPUs, no memory and no devices, for where it is not known what pods were given.
void leave_out_allocation(Configuration& configuration);

/// Whether it can be prepared, for those who only check a configuration.
[[nodiscard]] Result<void> check_admission(const Configuration& configuration);

/// Admission, put together. On the reactor; files are written beside it.
class Admission final : public api::Admitter, private agent::AdmittingNode {
 public:
  struct Parts {
    cri::Client& runtime;
    const pods::CriPods& runtime_pods;
    agent::Clock& clock;
    const agent::NodeReports& reports;
    agent::PodTracker& pods;
    agent::Evictions& evictions;
    agent::Recorder& recorder;
    PodSources& sources;
    DevicePlugins* plugins;               ///< null: evictd serves no device plugins
    const agent::NodeShutdown* shutdown;  ///< null: evictd does not wait for a shutdown of the node
  };

  struct Options {
    std::int64_t memory_capacity = 0;  ///< of the cgroup that stands for the node, bytes
    bool dry_run = false;              ///< no container is confined to what it is given
  };

  /// The configuration and the parts must outlive this.
  Admission(const boost::asio::any_io_executor& reactor, const Configuration& configuration, Options options,
            PreparedAdmission prepared, const Parts& parts);
  ~Admission() override;

  /// Confines containers from now on, until stop().
  void start();
  void stop();

  [[nodiscard]] std::int64_t memory_capacity() const override { return memory_capacity_; }
  [[nodiscard]] pods::TrustedNamespaces trusted_namespaces() const override { return trusted_; }
  [[nodiscard]] std::unique_ptr<api::AdmissionTask> admit(api::AdmissionRequestsPtr pods, bool reserve) override;

 private:
  [[nodiscard]] admission::NodeSnapshot snapshot() const override;
  void save(const admission::Allocations& allocations, const admission::Coming& coming, Written written) override;

  /// What outlives a restart.
  struct Kept {
    admission::Allocations allocations;
    admission::Coming coming;
    std::set<std::string> plugin_resources;
    Written written;  ///< for the reactor; may be empty
  };
  void keep(const admission::Allocations& allocations, const admission::Coming& coming);

  std::int64_t memory_capacity_;
  pods::TrustedNamespaces trusted_;
  Parts parts_;
  NodeFacts facts_;
  async::DeadlineThread writer_{"writing what pods were given"};
  std::shared_ptr<const PreparedAdmission::Store> store_;
  std::set<std::string> plugin_resources_;  // those of before the restart where no plugin is served this time
  Written written_;                         // of the allocations that were saved last
  async::LatestOnly<Kept> saved_;
  agent::PodAdmission admission_;
  std::unique_ptr<Enforcement> enforcement_;  // null: no container is confined, or somebody else does it
};

}  // namespace evictd::app
