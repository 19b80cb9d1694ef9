#include "wake/pods_high.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <expected>
#include <fstream>
#include <system_error>
#include <utility>
#include <variant>

#include "os/log.hpp"
#include "wake/memory_counters.hpp"

namespace evictd::wake {
namespace {

/// Nothing that an operator could mend here: a kernel without marks on cgroups (before 5.7), a hierarchy that may only
/// be read.
bool cannot_be(const os::FileError& error) {
  constexpr std::array codes{EOPNOTSUPP, EROFS, EACCES, EPERM};
  return std::ranges::find(codes, error.code) != codes.end();
}

void remove_note(const std::filesystem::path& note) {
  std::error_code error;
  std::filesystem::remove(note, error);
  if (error) os::log_warning("{}: {}", note.native(), error.message());
}

/// Whether nothing is left of it there.
bool lift_old_fence_of(const os::Directory& cgroup, const std::string& path) {
  const auto look = lift_fence(cgroup);
  if (!look) os::log_warning("an old fence may still stand: {}", look.error().message);
  if (look && look->before && !look->high())
    os::log_warning("lifted a fence of {} that an earlier evictd left, at {}", path, *look->before);
  return look.has_value();
}

}  // namespace

std::vector<std::string> noted_cgroups(std::vector<std::string> pods_cgroups, const std::filesystem::path& note) {
  std::string noted;
  std::getline(std::ifstream{note}, noted);
  const bool is_path = noted.starts_with('/');
  if (is_path && std::ranges::find(pods_cgroups, noted) == pods_cgroups.end()) pods_cgroups.push_back(std::move(noted));
  return pods_cgroups;
}

void lift_old_fence(const node::CgroupHierarchy& hierarchy, const std::string& pods_cgroup,
                    const std::filesystem::path& note) {
  if (hierarchy.version() == node::CgroupVersion::v1) return;
  bool is_there = false;
  bool is_lifted = true;
  for (const auto& path : noted_cgroups({pods_cgroup}, note)) {
    const auto cgroup = hierarchy.memory(path);
    if (!cgroup) continue;
    is_there = true;
    is_lifted = lift_old_fence_of(*cgroup, path) && is_lifted;
  }
  if (is_there && is_lifted) remove_note(note);
}

void let_go_while_loop_hangs(const node::CgroupHierarchy& hierarchy, const std::string& pods_cgroup) {
  if (hierarchy.version() == node::CgroupVersion::v1) return;
  const auto cgroup = hierarchy.memory(pods_cgroup);
  if (!cgroup) return;
  const auto lifted = lift_but_mark(*cgroup);
  if (!lifted)
    os::log_error("pods may be held: {}", lifted.error().message);
  else if (*lifted)
    os::log_warning("lifted memory.high of {}, so that no pod is held meanwhile", pods_cgroup);
}

PodsHigh::PodsHigh(const boost::asio::any_io_executor& reactor, Wakes& wakes, const node::CgroupHierarchy& hierarchy,
                   Options options, Listener& listener)
    : timer_{reactor},
      notifier_{wakes, options.source},
      hierarchy_{hierarchy},
      options_{std::move(options)},
      listener_{listener},
      events_{reactor, [this](const MemoryCounters& before, const MemoryCounters& now) {
                if (high_ && now.high > before.high) listener_.high_exceeded();
              }} {
  if (options_.among_pods)
    found("off: evictd runs among the pods, and would be held as they are");
  else if (std::ofstream written{options_.note}; !(written << options_.cgroup << std::endl))
    os::log_warning("{} cannot be written: nobody lifts memory.high should evictd be killed", options_.note.native());
}

PodsHigh::~PodsHigh() {
  const auto cgroup = hierarchy_.memory(options_.cgroup);
  const auto lifted = cgroup ? lift_fence(*cgroup) : std::unexpected(cgroup.error());
  if (lifted || lifted.error().is_gone())
    remove_note(options_.note);
  else
    os::log_error("memory.high stays: {}; \"evictd disarm\" lifts it", lifted.error().message);
}

void PodsHigh::look_again_at(core::Instant time) {
  if (time == due_ || options_.among_pods) return;
  due_ = time;
  timer_.expires_at(time);
  timer_.async_wait([this](boost::system::error_code error) {
    if (error) return;  // set anew, or `this` is gone
    due_ = core::Instant::max();
    listener_.look_again();
  });
}

void PodsHigh::adjust(const std::optional<FenceGoal>& goal, std::string_view unarmed) {
  if (options_.among_pods) return;
  const auto cgroup = hierarchy_.memory(options_.cgroup);
  auto done = os::FileResult<void>{};
  if (!cgroup)
    done = std::unexpected(cgroup.error());
  else if (goal)
    done = adjust(*cgroup, *goal, unarmed);
  if (done) return notifier_.works();
  stop_listening();
  if (cannot_be(done.error()))
    found("off: " + done.error().message);
  else if (!done.error().is_gone())
    return notifier_.failed(done.error());
  else
    found("waiting: no such cgroup");
  notifier_.works();
}

os::FileResult<void> PodsHigh::adjust(const os::Directory& cgroup, const FenceGoal& goal, std::string_view unarmed) {
  // Whoever exceeds it is heard from the moment on at which it stands.
  if (goal.level && !goal.lifted)
    if (auto heard = listen(cgroup); !heard) return heard;
  const auto look = adjust_fence(cgroup, goal);
  if (!look) return std::unexpected(look.error());
  if (const auto* foreign = std::get_if<fence::Respect>(&look->step)) {
    stop_listening();
    found(fmt::format("off: memory.high of {} is {}, set by someone else", options_.cgroup, foreign->high));
    return {};
  }
  if (high_ && std::holds_alternative<fence::Set>(look->step)) notifier_.rearmed();
  high_ = look->high();
  if (!high_) stop_listening();
  found(high_ ? "armed" : std::string(unarmed));
  return {};
}

os::FileResult<void> PodsHigh::listen(const os::Directory& cgroup) {
  const bool again = std::exchange(rearm_all_, false) && events_.counters();
  if (again) events_.close();
  // What the pods' own limits count is not this one's.
  const auto* name = cgroup.has("memory.events.local") ? "memory.events.local" : "memory.events";
  if (const auto opened = events_.keep_open(cgroup, name); !opened) return std::unexpected(opened.error());
  if (again) notifier_.re_registered(self_test_failed);
  return {};
}

/// What was exceeded until now is not told any more: not once another value stands either.
void PodsHigh::stop_listening() {
  high_.reset();
  events_.close();
}

/// What keeps this away is told of once; the rest is for the status.
void PodsHigh::found(std::string state) {
  if (state != state_ && state.starts_with("off:")) os::log_info("{}: {}", core::name(options_.source), state);
  state_ = std::move(state);
}

SourceStatus PodsHigh::status() const {
  auto status = notifier_.status(fmt::format("{} {}", core::name(options_.source), options_.cgroup), state_);
  status.level = high_;
  return status;
}

}  // namespace evictd::wake
