#include "wake/psi_trigger.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <unistd.h>

#include <utility>

#include "core/duration.hpp"
#include "os/file_descriptor.hpp"
#include "os/file_error.hpp"
#include "wake/wakes.hpp"

namespace evictd::wake {
namespace {

/// A descriptor is one trigger, from the write on.
os::FileResult<os::FileDescriptor> make_trigger(const os::Directory& directory, const std::string& name,
                                                const PsiLevel& level) {
  const auto error = [&] {
    return std::unexpected(os::system_error(errno, fmt::format("{}/{}", directory.path(), name)));
  };
  os::FileDescriptor file{::openat(directory.descriptor(), name.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC)};
  if (!file) return error();
  const auto command = level.command();
  // With the NUL at its end: the kernel puts one over the last byte.
  if (::write(file.get(), command.c_str(), command.size() + 1) < 0) return error();
  return file;
}

/// A trigger whose cgroup was removed answers every poll with an error. What this poll takes away is told already.
bool is_dead(int file) {
  pollfd request{.fd = file, .events = POLLPRI, .revents = 0};
  return ::poll(&request, 1, 0) > 0 && (request.revents & POLLERR) != 0;
}

}  // namespace

std::vector<PsiPlace> psi_places(const node::NodeMemory& memory, const std::string& proc,
                                 const node::CgroupHierarchy& hierarchy) {
  const auto of_cgroup = [&](const std::string& cgroup) {
    return PsiPlace{cgroup, [&hierarchy, cgroup] { return hierarchy.memory(cgroup); }, "memory.pressure"};
  };
  const PsiPlace machine{"the machine", [proc] { return os::Directory::open(proc); }, "pressure/memory"};
  if (hierarchy.version() == node::CgroupVersion::v1) return {machine};
  return {memory.node_cgroup() == "/" ? machine : of_cgroup(memory.node_cgroup()), of_cgroup(memory.pods_cgroup())};
}

PsiTrigger::PsiTrigger(boost::asio::any_io_executor reactor, Wakes& wakes, PsiPlace place, std::vector<PsiLevel> levels,
                       FastPolling* polling)
    : notifier_{wakes, core::WakeSource::Psi}, place_{std::move(place)}, polling_{polling} {
  for (const auto& level : levels) triggers_.push_back(std::make_unique<Trigger>(reactor, level));
}

void PsiTrigger::arm(const Arming&) {
  const auto directory = place_.directory();
  const bool same = directory && directory->inode() == inode_;
  const bool rearms_all = std::exchange(rearm_all_, false);
  os::FileResult<void> result;
  bool again = false;
  for (auto& trigger : triggers_) {
    if (same && trigger->polled.is_open() && !rearms_all) continue;
    trigger->polled.close();
    if (!directory) continue;
    const auto opened = open(*directory, *trigger);
    if (opened && std::exchange(trigger->was_armed, true)) again = true;
    if (!opened && result) result = opened;
  }
  if (directory) inode_ = directory->inode();
  if (!directory && !directory.error().is_gone()) return notifier_.failed(directory.error());
  if (!result) {  // what is closed is opened next time
    const bool off = result.error().is_gone() || result.error().code == EOPNOTSUPP;
    notifier_.failed(off ? result.error().in("PSI is off; boot with psi=1") : result.error());
  } else {
    notifier_.works();
  }
  if (!again) return;
  notifier_.rearmed();
  notifier_.re_registered(rearms_all ? self_test_failed : same ? "the kernel dropped a trigger" : cgroup_made_anew);
}

os::FileResult<void> PsiTrigger::open(const os::Directory& directory, Trigger& trigger) {
  trigger.level = trigger.wanted;
  auto file = make_trigger(directory, place_.file, trigger.level);
  if (!file && file.error().code == EINVAL && trigger.wanted.without_privilege() != trigger.wanted) {
    trigger.level = trigger.wanted.without_privilege();
    file = make_trigger(directory, place_.file, trigger.level);
  }
  if (!file) return std::unexpected(file.error());
  return trigger.polled.watch(*std::move(file), {}, [this, &trigger] { stalled(trigger); });
}

void PsiTrigger::stalled(Trigger& trigger) {
  if (is_dead(trigger.polled.descriptor())) return trigger.polled.close();
  if (polling_ != nullptr) polling_->poll_fast(trigger.level.window);
  notifier_.wake(fmt::format("{} of {}", trigger.level.text(), place_.name));
}

std::vector<SourceStatus> PsiTrigger::status() const {
  std::vector<std::string> levels;
  bool armed = false;
  bool shortened = false;
  for (const auto& trigger : triggers_) {
    armed = armed || trigger->polled.is_open();
    shortened = shortened || trigger->level.window != trigger->wanted.window;
    levels.push_back(trigger->level.text());
  }
  auto status = notifier_.status("psi " + place_.name, !armed      ? "waiting: no such cgroup"
                                                       : shortened ? "armed: with windows of whole 2s, as this host "
                                                                     "permits without CAP_SYS_RESOURCE"
                                                                   : "armed");
  status.detail = fmt::format("{}", fmt::join(levels, ", "));
  return {status};
}

}  // namespace evictd::wake
