#include "app/pod_holder.hpp"

#include <system_error>
#include <utility>

#include "async/side_thread.hpp"
#include "node/hold_notes.hpp"
#include "node/node_memory.hpp"
#include "os/log.hpp"

namespace asio = boost::asio;

namespace evictd::app {

evict::HeldEnd::Options held_end(const config::AgentConfiguration& settings) {
  const auto& brake = settings.brake;
  return {.time = {.brake = brake.time, .hooks = settings.hooks.time, .floor = static_cast<double>(brake.floor) / 100},
          .headroom = brake.headroom};
}

std::unique_ptr<evict::PodHolds> make_pod_holder(const asio::any_io_executor& reactor,
                                                 const config::AgentConfiguration& settings, bool dry_run,
                                                 const evict::IsProtected& is_protected) {
  const auto options = held_end(settings);
  if (dry_run || !(options.time.brakes() || options.time.asks())) return nullptr;
  auto hierarchy = node::CgroupHierarchy::detect(settings.node.cgroup_mount);
  if (!hierarchy) {
    os::log_warning("no pod is held before it is killed: {}", hierarchy.error().message);
    return nullptr;
  }
  try {
    return std::make_unique<evict::PodHolds>(
        reactor,
        evict::PodHolds::Parts{.hierarchy = std::make_shared<const node::CgroupHierarchy>(*std::move(hierarchy)),
                               .pods_cgroup = node::pods_cgroup(settings.node),
                               .is_protected = is_protected,
                               .notes = node::HoldNotes{config::runtime_files(settings).held},
                               .worker = std::make_unique<async::SideThread>(reactor, "holds")});
  } catch (const std::system_error& error) {
    os::log_warning("no pod is held before it is killed: {}", error.what());
    return nullptr;
  }
}

void let_old_holds_go(const node::CgroupHierarchy& hierarchy, const config::AgentConfiguration& settings) {
  const auto count = node::lift_all_holds(hierarchy, node::HoldNotes{config::runtime_files(settings).held});
  if (count > 0) os::log_warning("let go of {} pod(s) that an earlier evictd held", count);
}

}  // namespace evictd::app
