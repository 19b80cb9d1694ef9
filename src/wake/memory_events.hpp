#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <string>
#include <vector>

#include "node/cgroup.hpp"
#include "wake/memory_counters.hpp"
#include "wake/memory_counters_file.hpp"
#include "wake/source.hpp"
#include "wake/wakes.hpp"

namespace evictd::wake {

/// memory.events of one cgroup v2, which counts for all cgroups below it: a limit that was met, a failed allocation or
/// a kill by the kernel begins a pass.
class MemoryEvents final : public Source {
 public:
  /// `cgroup` need not exist yet: each arm() looks again. Not the root, which has no such file.
  MemoryEvents(boost::asio::any_io_executor reactor, Wakes& wakes, const node::CgroupHierarchy& hierarchy,
               std::string cgroup);

  void arm(const Arming&) override;
  void rearm_all() override { rearm_all_ = true; }
  [[nodiscard]] std::vector<SourceStatus> status() const override;

 private:
  void changed(const MemoryCounters& before, const MemoryCounters& now);

  Notifier notifier_;
  const node::CgroupHierarchy& hierarchy_;
  std::string cgroup_;
  MemoryCountersFile file_;
  bool was_open_ = false;
  bool rearm_all_ = false;
};

}  // namespace evictd::wake
