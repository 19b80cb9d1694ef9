#include "app/agent_parts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ranges>
#include <system_error>

#include "agent/describe.hpp"
#include "app/find_kubelet.hpp"
#include "async/side_thread.hpp"
#include "core/threshold.hpp"
#include "os/log.hpp"

namespace asio = boost::asio;

namespace evictd::app {

void say_what_was_found(const Configuration& configuration) {
  for (const auto& remark : configuration.found) os::log_info("{}", remark);
  if (const auto& lacking = configuration.no_allocation) os::log_warning("{}", *lacking);
}

void say_what_is_guarded(const node::NodeMemory& memory, const node::CgroupHierarchy& hierarchy, std::int64_t capacity,
                         const core::EvictionPolicy& policy, bool dry_run) {
  os::log_info("evictd {} guards {} ({}, {} of memory) with {} thresholds{}", EVICTD_VERSION, memory.node_cgroup(),
               node::name(hierarchy.version()), agent::human_bytes(capacity), policy.thresholds.size(),
               dry_run ? "; dry run: nothing is evicted" : "");
  const auto in_words = [](const core::Threshold& threshold) { return core::to_string(threshold); };
  os::log_info("it acts on {}", fmt::join(policy.thresholds | std::views::transform(in_words), ", "));
}

evict::RemoveVolumes who_removes_volumes(const config::AgentConfiguration& settings) {
  using enum config::InKubeletsPlace;
  const auto mode = settings.eviction.remove_volumes;
  if (mode == On) return evict::RemoveVolumes::always;
  return mode == Off || names_kubelet(settings) ? evict::RemoveVolumes::never
                                                : evict::RemoveVolumes::where_no_kubelet_runs;
}

evict::IsProtected protection(const config::AgentConfiguration& settings) {
  return [proc = settings.node.proc_mount](pid_t pid) { return evict::is_protected(pid, proc); };
}

std::unique_ptr<AllHooks> hooks_before_kills(const asio::any_io_executor& reactor, const config::HookSettings& settings,
                                             bool dry_run) {
  if (dry_run || settings.time == core::Duration::zero()) return nullptr;
  return std::make_unique<AllHooks>(reactor, settings.directory);
}

node::PodDisk::MakeWorker walkers(const asio::any_io_executor& reactor) {
  return [reactor]() -> std::unique_ptr<async::Worker> {
    try {
      return std::make_unique<async::SideThread>(reactor, "walker");
    } catch (const std::system_error&) {
      return nullptr;
    }
  };
}

}  // namespace evictd::app
