#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/duration.hpp"
#include "node/cgroup.hpp"
#include "node/node_memory.hpp"
#include "os/directory.hpp"
#include "os/file_error.hpp"
#include "wake/polled_file.hpp"
#include "wake/psi_level.hpp"
#include "wake/source.hpp"
#include "wake/wakes.hpp"

namespace evictd::wake {

/// What PSI is kept for: the machine (/proc/pressure/memory), or a v2 cgroup (memory.pressure).
struct PsiPlace {
  std::string name;  ///< "the machine", "/kubepods"
  /// Where its file is; is_gone() while there is no such cgroup.
  std::function<os::FileResult<os::Directory>()> directory;
  std::string file;  ///< in the directory
};

/// The stalls of the node, and of its pods where the kernel keeps them apart (v2). `proc`: where proc is mounted.
/// `hierarchy` is kept.
[[nodiscard]] std::vector<PsiPlace> psi_places(const node::NodeMemory& memory, const std::string& proc,
                                               const node::CgroupHierarchy& hierarchy);

/// What can look at the node as often as it can, for so long.
class FastPolling {
 public:
  virtual void poll_fast(core::Duration time) = 0;

 protected:
  ~FastPolling() = default;
};

/// Pressure stall information: a pass, as soon as tasks have waited for memory for too long within a window, and a
/// closer look at the node for as long as the window is.
///
/// It evicts no pod by itself: a pod at its own limit stalls while the node has plenty. The kernel looks ten times a
/// window and tells once in one (psi.rst). Any poll, epoll included, clears the notice: a notice that
/// comes between two waits is lost, and nothing here relies on a second one.
class PsiTrigger final : public Source {
 public:
  /// `polling` is told the window for which it should look as often as it can; it may be null. `levels`: each is a
  /// trigger of its own. Where the host takes no such window, the next one that it takes, with the same part of it as
  /// stall.
  PsiTrigger(boost::asio::any_io_executor reactor, Wakes& wakes, PsiPlace place, std::vector<PsiLevel> levels,
             FastPolling* polling);

  /// Opens what is not open, or belongs to an earlier cgroup of the name.
  void arm(const Arming&) override;
  void rearm_all() override { rearm_all_ = true; }
  [[nodiscard]] std::vector<SourceStatus> status() const override;

 private:
  struct Trigger {
    Trigger(const boost::asio::any_io_executor& reactor, PsiLevel wanted)
        : wanted{wanted}, level{wanted}, polled{reactor} {}

    PsiLevel wanted;
    PsiLevel level;  // what the host made of it
    PolledFile polled;
    bool was_armed = false;
  };

  [[nodiscard]] os::FileResult<void> open(const os::Directory& directory, Trigger& trigger);
  void stalled(Trigger& trigger);

  Notifier notifier_;
  PsiPlace place_;
  FastPolling* polling_;
  std::vector<std::unique_ptr<Trigger>> triggers_;
  std::uint64_t inode_ = 0;  // of the directory whose file the triggers are of
  bool rearm_all_ = false;
};

}  // namespace evictd::wake
