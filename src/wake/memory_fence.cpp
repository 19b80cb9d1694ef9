#include "wake/memory_fence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <expected>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>
#include <variant>

#include "core/signal.hpp"
#include "os/directory.hpp"
#include "os/log.hpp"
#include "wake/fence.hpp"
#include "wake/memory_counters.hpp"
#include "wake/wakes.hpp"

namespace evictd::wake {

namespace {

void remove_note(const std::filesystem::path& note) {
  std::error_code error;
  std::filesystem::remove(note, error);
  if (error) os::log_warning("{}: {}", note.native(), error.message());
}

}  // namespace

void lift_old_fence(const node::CgroupHierarchy& hierarchy, const std::string& pods_cgroup,
                    const std::filesystem::path& note) {
  if (hierarchy.version() == node::CgroupVersion::v1) return;
  const auto cgroup = hierarchy.memory(pods_cgroup);
  if (!cgroup) return;
  const auto look = lift_fence(*cgroup);
  if (!look) return os::log_warning("an old fence may still stand: {}", look.error().message);
  if (look->before && !look->high())
    os::log_warning("lifted a fence of {} that an earlier evictd left, at {}", pods_cgroup, *look->before);
  remove_note(note);
}

MemoryFence::MemoryFence(boost::asio::any_io_executor reactor, Wakes& wakes, const node::CgroupHierarchy& hierarchy,
                         node::NodeMemory& memory, std::filesystem::path note)
    : timer_{reactor},
      notifier_{wakes, core::WakeSource::Fence},
      hierarchy_{hierarchy},
      memory_{memory},
      events_{reactor,
              [this](const MemoryCounters& before, const MemoryCounters& now) {
                if (high_ && now.high > before.high) notifier_.wake("memory.high of " + memory_.pods_cgroup());
              }},
      note_{std::move(note)} {
  if (const std::ofstream written{note_}; !written)
    os::log_warning("{} cannot be written: nobody lifts the fence should evictd be killed", note_.native());
  tick();
}

MemoryFence::~MemoryFence() {
  const auto cgroup = hierarchy_.memory(memory_.pods_cgroup());
  const auto lifted = cgroup ? lift_fence(*cgroup) : std::unexpected(cgroup.error());
  if (lifted || lifted.error().is_gone())
    remove_note(note_);
  else
    os::log_error("the fence stays: {}; \"evictd disarm\" lifts it", lifted.error().message);
}

void MemoryFence::arm(const Arming& arming) {
  levels_.clear();
  std::ranges::copy_if(arming.levels, std::back_inserter(levels_),
                       [](const Level& level) { return level.hard && core::is_memory(level.signal); });
  releasing_ = arming.releasing;
  follow();
}

void MemoryFence::tick() {
  timer_.expires_after(std::chrono::seconds(1));
  timer_.async_wait([this](boost::system::error_code error) {
    if (error) return;  // cancelled: `this` may be gone
    follow();
    tick();
  });
}

void MemoryFence::follow() {
  const auto cgroup = hierarchy_.memory(memory_.pods_cgroup());
  const auto done = cgroup ? follow(*cgroup) : std::unexpected(cgroup.error());
  if (done) return notifier_.works();
  high_.reset();
  events_.close();
  if (!done.error().is_gone()) return notifier_.failed(done.error());
  found("waiting: no such cgroup");
  notifier_.works();
}

os::FileResult<void> MemoryFence::follow(const os::Directory& cgroup) {
  FenceGoal goal{.lifted = releasing_};
  if (const auto reading = memory_.read(std::chrono::steady_clock::now()); reading && reading->pods) {
    goal.usage = reading->pods->usage;
    goal.level = fence_level(levels_, *reading);
  } else if (!releasing_) {
    return {};  // not knowing where the pods stand, leave the fence where it is; who reads the node tells why
  }
  const auto look = adjust_fence(cgroup, goal);
  if (!look) return std::unexpected(look.error());
  // What the pods' own limits count is not this one's.
  const auto* events = cgroup.has("memory.events.local") ? "memory.events.local" : "memory.events";
  if (auto opened = events_.keep_open(cgroup, events); !opened) return std::unexpected(opened.error());

  if (const auto* foreign = std::get_if<fence::Respect>(&look->step)) {
    high_.reset();
    found(fmt::format("off: memory.high of {} is {}, set by someone else", memory_.pods_cgroup(), foreign->high));
    return {};
  }
  if (high_ && std::holds_alternative<fence::Set>(look->step)) notifier_.rearmed();
  high_ = look->high();
  found(high_        ? "armed"
        : releasing_ ? "lifted: an evicted pod's memory is coming back"
                     : "waiting: no hard memory threshold");
  return {};
}

/// A fence that someone else's value keeps away is told of once; the rest is for the status.
void MemoryFence::found(const std::string& state) {
  if (state != state_ && state.starts_with("off:")) os::log_warning("fence: {}", state);
  state_ = state;
}

std::vector<SourceStatus> MemoryFence::status() const {
  auto status = notifier_.status("fence " + memory_.pods_cgroup(), state_);
  status.level = high_;
  return {status};
}

}  // namespace evictd::wake
