#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <string>
#include <vector>

#include "node/cgroup.hpp"
#include "wake/memcg_event.hpp"
#include "wake/source.hpp"
#include "wake/wakes.hpp"

namespace evictd::wake {

/// The last resort: the kernel signals an eventfd when a cgroup v1 memory cgroup is out of memory, before it kills
/// anything there (cgroup-v1/memory.rst, section 10). A pass that begins then comes late, but it comes, whatever became
/// of the thresholds, and it evicts by the rules what the kernel kills by its own. The cgroup itself or one it lies in
/// is meant: a container that meets its own limit is none of the node's business and begins no pass. The root cgroup
/// has no limit: there the registration is accepted and stays silent.
class OomControl final : public Source {
 public:
  /// `cgroup` need not exist yet: each arm() looks again.
  OomControl(boost::asio::any_io_executor reactor, Wakes& wakes, const node::CgroupHierarchy& hierarchy,
             std::string cgroup);

  /// Registers where it is not registered, or where the cgroup was removed and made again. One read otherwise.
  void arm(const Arming& arming) override;
  void rearm_all() override { rearm_all_ = event_.is_open(); }
  [[nodiscard]] std::vector<SourceStatus> status() const override;

 private:
  void on_event();

  Notifier notifier_;
  const node::CgroupHierarchy& hierarchy_;
  std::string cgroup_;
  MemcgEvent event_;
  bool was_registered_ = false;
  bool rearm_all_ = false;
};

}  // namespace evictd::wake
