#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/signal.hpp"
#include "node/cgroup.hpp"
#include "os/directory.hpp"
#include "wake/source.hpp"
#include "wake/wakes.hpp"

namespace evictd::wake {

/// Usage thresholds of one cgroup v1 memory cgroup: the kernel signals an eventfd when memory.usage_in_bytes crosses a
/// level in either direction (cgroup-v1/memory.rst, section 9). It checks every 128 pages a CPU charges, so it is exact
/// to half a MiB a CPU.
///
/// Where file cache is part of the usage, the level at which a threshold is met may never be reached: the kernel takes
/// the cache back while the working set grows. So as long as the usage is below the level from which on that can be
/// (UsageLevel::without_reclaimable), that one is armed as well; beyond it the kernel sees only half of the matter, and
/// something has to look.
///
/// A level that was crossed while it was being registered, of which the kernel says nothing, begins a pass, too.
///
/// Where usage is seen to have crossed a level for a moment and the kernel has not signalled it, it missed one: the
/// level is registered anew.
class MemcgThreshold final : public Source {
 public:
  /// `signal`: whose levels to arm, on the usage of `cgroup`, which need not exist yet: each arm() looks again.
  MemcgThreshold(boost::asio::any_io_executor reactor, Wakes& wakes, core::Signal signal,
                 const node::CgroupHierarchy& hierarchy, std::string cgroup);
  ~MemcgThreshold() override;

  /// One registration for each level. A registration moves when its usage level is off by more than the kernel's own
  /// coarseness (half a MiB a CPU, at least 1 MiB): less would change nothing, more would wake too early or, worse, too
  /// late. The new one is made before the old one is dropped, so there is no unarmed moment.
  void arm(const Arming& arming) override;
  void rearm_all() override { rearm_all_ = true; }
  [[nodiscard]] std::vector<SourceStatus> status() const override;

  /// The kernel will wake a pass before any of the thresholds can be met, give or take its coarseness.
  [[nodiscard]] bool guards() const { return guards_ && !notifier_.has_failed(); }

 private:
  struct Registration;
  struct Wanted;
  using Registrations = std::vector<std::shared_ptr<Registration>>;

  [[nodiscard]] std::vector<Wanted> wanted(const Arming& arming);
  [[nodiscard]] Result<std::shared_ptr<Registration>> register_level(const Wanted& wanted);
  void wake_if_crossed(const os::Directory& cgroup, Registration& registration);
  void on_event(Registration& registration);

  boost::asio::any_io_executor reactor_;
  Notifier notifier_;
  core::Signal signal_;
  const node::CgroupHierarchy& hierarchy_;
  std::string cgroup_;
  std::uint64_t incarnation_ = 0;  // of the cgroup that was registered with last
  Registrations registrations_;
  bool guards_ = false;
  bool rearm_all_ = false;
};

}  // namespace evictd::wake
