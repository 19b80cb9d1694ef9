#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/duration.hpp"
#include "node/cgroup.hpp"
#include "node/node_memory.hpp"
#include "wake/pods_high.hpp"
#include "wake/source.hpp"
#include "wake/tripwire_rule.hpp"
#include "wake/wakes.hpp"

namespace evictd::wake {

/// Bytes by which a tripwire stands above the usage at which the first hard memory threshold is met: what the kernel's
/// counters may be off (64 pages a processor, MEMCG_CHARGE_BATCH), and how far a fence may be off before it is moved.
/// So when it fires the threshold is met, or what the pods grew by is in part nothing that the node counts.
[[nodiscard]] std::int64_t tripwire_margin();

/// Has the kernel wake evictd on cgroup v2 when the pods cross the first hard memory threshold: memory.high of their
/// cgroup stands there, and is lifted as soon as it has fired and a pass has acted, or has found that nothing is short
/// (TripwireRule). Whoever allocates beyond it is held for these milliseconds.
///
/// It follows file cache and what is used outside of the pods, at each arm() and every 1 to 10 s. What it cannot
/// express stays with the sampler: soft thresholds, and memory that others than pods take, or that pods take while
/// the kernel takes their file cache back. A memory.high of someone else is left alone.
class Tripwire final : public Source, public PodsHigh::Listener {
 public:
  struct Options {
    std::filesystem::path note;  ///< see PodsHigh
    bool among_pods = false;     ///< the same
    TripwireSettings rule{};
    core::Duration fastest_look = std::chrono::seconds(1);
  };

  /// All of these must outlive this.
  Tripwire(const boost::asio::any_io_executor& reactor, Wakes& wakes, const node::CgroupHierarchy& hierarchy,
           node::NodeMemory& memory, const Options& options);

  void arm(const Arming& arming) override;
  void rearm_all() override { high_.rearm_all(); }
  [[nodiscard]] std::vector<SourceStatus> status() const override;

  /// The kernel's word.
  void high_exceeded() override;

 private:
  [[nodiscard]] TripwireRule::Decision follow();
  void look_again() override;

  node::NodeMemory& memory_;
  PodsHigh high_;
  TripwireRule rule_;
  std::vector<Level> levels_;  // hard memory levels
  core::Duration fastest_look_;
  core::Duration pause_ = fastest_look_;  // until it looks by itself
};

}  // namespace evictd::wake
