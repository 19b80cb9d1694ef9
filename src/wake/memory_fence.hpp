#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <filesystem>
#include <optional>
#include <vector>

#include "node/cgroup.hpp"
#include "node/node_memory.hpp"
#include "wake/fence.hpp"
#include "wake/pods_high.hpp"
#include "wake/source.hpp"
#include "wake/wakes.hpp"

namespace evictd::wake {

/// Has the kernel hold the pods at the first hard memory threshold until evictd has acted: memory.high of the pods'
/// cgroup (v2). An allocation beyond it costs the allocator seconds per MiB, and wakes a pass.
///
/// The fence follows what the pods may still take, at each arm() and every second, as file cache and memory outside of
/// the pods change that. While a victim's memory is coming back it is lifted, since it would hold those who did
/// nothing, and so it is when this object goes. A memory.high of someone else is left alone.
class MemoryFence final : public Source, private PodsHigh::Listener {
 public:
  /// All of these must outlive this. `note`, `among_pods`: see PodsHigh.
  MemoryFence(const boost::asio::any_io_executor& reactor, Wakes& wakes, const node::CgroupHierarchy& hierarchy,
              node::NodeMemory& memory, std::filesystem::path note, bool among_pods);

  void arm(const Arming& arming) override;
  void rearm_all() override { high_.rearm_all(); }
  [[nodiscard]] std::vector<SourceStatus> status() const override { return {high_.status()}; }

 private:
  void follow();
  [[nodiscard]] std::optional<FenceGoal> goal();
  void high_exceeded() override { high_.wake(); }
  void look_again() override;

  node::NodeMemory& memory_;
  PodsHigh high_;
  std::vector<Level> levels_;  // hard memory levels
  bool releasing_ = false;
};

}  // namespace evictd::wake
