#include "wake/memory_fence.hpp"

#include <chrono>
#include <utility>

#include "os/now.hpp"

namespace evictd::wake {

MemoryFence::MemoryFence(const boost::asio::any_io_executor& reactor, Wakes& wakes,
                         const node::CgroupHierarchy& hierarchy, node::NodeMemory& memory, std::filesystem::path note,
                         bool among_pods)
    : memory_{memory},
      high_{reactor, wakes, hierarchy,
            PodsHigh::Options{.source = core::WakeSource::Fence,
                              .cgroup = memory.pods_cgroup(),
                              .note = std::move(note),
                              .among_pods = among_pods},
            *this} {
  high_.look_again_at(os::now() + std::chrono::seconds(1));
}

void MemoryFence::arm(const Arming& arming) {
  levels_ = hard_memory_levels(arming.levels);
  releasing_ = arming.releasing;
  follow();
}

void MemoryFence::look_again() {
  follow();
  high_.look_again_at(os::now() + std::chrono::seconds(1));
}

void MemoryFence::follow() {
  high_.adjust(goal(),
               releasing_ ? "lifted: an evicted pod's memory is coming back" : "waiting: no hard memory threshold");
}

/// Nothing where nobody knows where the pods stand: the fence stays where it is, and who reads the node tells why.
std::optional<FenceGoal> MemoryFence::goal() {
  if (releasing_) return FenceGoal{.lifted = true};
  const auto reading = memory_.read(os::now());
  if (!reading || !reading->pods) return std::nullopt;
  return FenceGoal{.usage = reading->pods->usage, .level = fence_level(levels_, *reading)};
}

}  // namespace evictd::wake
