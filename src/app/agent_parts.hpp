#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <cstdint>
#include <memory>

#include "app/all_hooks.hpp"
#include "app/configuration.hpp"
#include "config/agent_configuration.hpp"
#include "core/synchronizer.hpp"
#include "evict/pod_volumes_end.hpp"
#include "evict/protection.hpp"
#include "node/cgroup.hpp"
#include "node/node_memory.hpp"
#include "node/pod_disk.hpp"

// Small parts of the agent, as the configuration wants them.

namespace evictd::app {

/// In the log: what stands for each "auto", and what cannot be done by it.
void say_what_was_found(const Configuration& configuration);

/// In the log. `capacity` is bytes of memory.
void say_what_is_guarded(const node::NodeMemory& memory, const node::CgroupHierarchy& hierarchy, std::int64_t capacity,
                         const core::EvictionPolicy& policy, bool dry_run);

[[nodiscard]] evict::RemoveVolumes who_removes_volumes(const config::AgentConfiguration& settings);

/// Whom no kill may reach.
[[nodiscard]] evict::IsProtected protection(const config::AgentConfiguration& settings);

/// Null where nobody is asked.
[[nodiscard]] std::unique_ptr<AllHooks> hooks_before_kills(const boost::asio::any_io_executor& reactor,
                                                           const config::HookSettings& settings, bool dry_run);

/// Walkers of directories. Null where the node has no process ids left.
[[nodiscard]] node::PodDisk::MakeWorker walkers(const boost::asio::any_io_executor& reactor);

}  // namespace evictd::app
