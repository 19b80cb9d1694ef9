#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "admission/allocation/resource_allocator.hpp"
#include "admission/chain.hpp"
#include "admission/pod_allocation.hpp"
#include "agent/agent.hpp"
#include "agent/evictions.hpp"
#include "agent/node_reports.hpp"
#include "agent/pod_admission.hpp"
#include "agent/pod_tracker.hpp"
#include "agent/recorder.hpp"
#include "api/asked_pods.hpp"
#include "async/deadline_thread.hpp"
#include "async/latest_only.hpp"
#include "commands/configuration.hpp"
#include "commands/node_facts.hpp"
#include "commands/pod_sources.hpp"
#include "core/error.hpp"
#include "node/allocation_store.hpp"

namespace evictd::commands {

/// Admission, put together: the chain and what pods were given before are read first, for they may be wrong; the agent
/// joins later.
class Admission {
 public:
  /// Error: the configuration asks for what cannot be, or what the state file has does not fit it. `memory_capacity`:
  /// of the cgroup that stands for the node, bytes.
  [[nodiscard]] static Result<std::unique_ptr<Admission>> prepare(const Configuration& configuration,
                                                                  std::int64_t memory_capacity);
  ~Admission();

  struct Parts {
    const agent::Agent& agent;
    const agent::NodeReports& reports;
    agent::PodTracker& pods;
    agent::Evictions& evictions;
    agent::Recorder& recorder;
    PodSources& sources;
    std::function<bool()> shutting_down;
  };
  /// All of the parts must outlive this.
  void begin(const Parts& parts);

  /// For the API, once it has begun.
  [[nodiscard]] api::Admitter admitter();

 private:
  Admission(const Configuration& configuration, std::int64_t memory_capacity, admission::ResourceAllocator allocator);

  const Configuration& configuration_;
  std::int64_t memory_capacity_;
  /// What pods were given, in a file. Shared with the thread that writes it.
  struct Store {
    admission::ResourceAllocator allocator;
    node::AllocationStore file;
  };
  std::shared_ptr<Store> store_;
  admission::Allocations restored_;
  std::optional<admission::Chain> chain_;
  std::optional<NodeFacts> facts_;
  std::optional<agent::PodAdmission> admission_;
  async::DeadlineThread writer_{"writing what pods were given"};
  async::LatestOnly<admission::Allocations> saved_;
};

/// Whether it can be prepared, for those who only check a configuration.
[[nodiscard]] Result<void> check_admission(const Configuration& configuration);

}  // namespace evictd::commands
