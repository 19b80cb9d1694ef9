#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "node/cgroup.hpp"
#include "wake/memory_counters.hpp"
#include "wake/memory_counters_file.hpp"
#include "wake/source.hpp"
#include "wake/wakes.hpp"

namespace evictd::wake {

/// memory.events of one cgroup v2, which counts for all cgroups below it: a failed allocation or a kill by the kernel
/// begins a pass. So does a limit of its own that was met; what the pods meet of theirs, which one that reads files
/// does all the time, is no news for the node.
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
  void say(std::string_view what);

  Notifier notifier_;
  const node::CgroupHierarchy& hierarchy_;
  std::string cgroup_;
  MemoryCountersFile file_;   // of all that are below, too
  MemoryCountersFile local_;  // memory.events.local
  bool was_open_ = false;
  bool rearm_all_ = false;
};

}  // namespace evictd::wake
