#include "app/black_box.hpp"

#include <system_error>
#include <utility>

#include "async/side_thread.hpp"
#include "node/cgroup.hpp"
#include "node/pod_memory_snapshot.hpp"
#include "os/directory.hpp"

namespace evictd::app {

std::unique_ptr<agent::BlackBox> make_black_box(const boost::asio::any_io_executor& reactor,
                                                const config::AgentConfiguration& settings, bool dry_run) {
  auto hierarchy = node::CgroupHierarchy::detect(settings.node.cgroup_mount);
  auto proc = os::Directory::open(settings.node.proc_mount);
  if (dry_run || !hierarchy || !proc) return nullptr;
  auto reader = std::make_shared<const node::PodMemoryReader>(*std::move(hierarchy), *std::move(proc));
  try {
    return std::make_unique<agent::BlackBox>(reactor, std::make_unique<async::SideThread>(reactor, "black box"),
                                             reader);
  } catch (const std::system_error&) {
    return std::make_unique<agent::BlackBox>(reactor, nullptr, reader);
  }
}

}  // namespace evictd::app
