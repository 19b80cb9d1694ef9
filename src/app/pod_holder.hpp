#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <memory>

#include "config/agent_configuration.hpp"
#include "evict/held_end.hpp"
#include "evict/pod_holds.hpp"
#include "evict/protection.hpp"
#include "node/cgroup.hpp"

namespace evictd::app {

/// What a pod is given that is to be killed at once for want of memory (eviction.brake).
[[nodiscard]] evict::HeldEnd::Options held_end(const config::AgentConfiguration& settings);

/// Null where no pod is given anything, or no thread can be had: then none is held.
[[nodiscard]] std::unique_ptr<evict::PodHolds> make_pod_holder(const boost::asio::any_io_executor& reactor,
                                                               const config::AgentConfiguration& settings, bool dry_run,
                                                               const evict::IsProtected& is_protected);

/// What an earlier evictd held when it was killed, whatever the configuration says by now.
void let_old_holds_go(const node::CgroupHierarchy& hierarchy, const config::AgentConfiguration& settings);

}  // namespace evictd::app
