#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "node/cgroup.hpp"
#include "node/node_memory.hpp"
#include "os/directory.hpp"
#include "os/file_error.hpp"
#include "wake/memory_counters_file.hpp"
#include "wake/source.hpp"
#include "wake/wakes.hpp"

namespace evictd::wake {

/// Has the kernel hold the pods at the first hard memory threshold until evictd has acted: memory.high of the pods'
/// cgroup (v2). An allocation beyond it costs the allocator seconds per MiB, and wakes a pass.
///
/// The fence follows what the pods may still take, at each arm() and every second, as file cache and memory outside of
/// the pods change that. While a victim's memory is coming back it is lifted, since it would hold those who did
/// nothing, and so it is when this object goes. A memory.high of someone else is left alone.
class MemoryFence final : public Source {
 public:
  /// All of these must outlive this. `note`: a file, on a tmpfs, that is there as long as this is and a fence may
  /// stand; what outlives evictd is for "evictd disarm", which the unit then runs.
  MemoryFence(boost::asio::any_io_executor reactor, Wakes& wakes, const node::CgroupHierarchy& hierarchy,
              node::NodeMemory& memory, std::filesystem::path note);
  ~MemoryFence() override;

  void arm(const Arming& arming) override;
  [[nodiscard]] std::vector<SourceStatus> status() const override;

 private:
  void follow();
  [[nodiscard]] os::FileResult<void> follow(const os::Directory& cgroup);
  void found(const std::string& state);
  void tick();

  boost::asio::steady_timer timer_;
  Notifier notifier_;
  const node::CgroupHierarchy& hierarchy_;
  node::NodeMemory& memory_;
  MemoryCountersFile events_;
  std::vector<Level> levels_;  // hard memory levels
  bool releasing_ = false;
  std::string state_ = "waiting: no level yet";
  std::optional<std::int64_t> high_;  // while it stands and is evictd's
  std::filesystem::path note_;
};

/// A fence that an earlier evictd left, killed before it could lift it, goes, and its note; whatever the configuration
/// says by now. What is done, or cannot be done, is logged.
void lift_old_fence(const node::CgroupHierarchy& hierarchy, const std::string& pods_cgroup,
                    const std::filesystem::path& note);

}  // namespace evictd::wake
