#include "wake/oom_control.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <expected>
#include <utility>

#include "wake/wakes.hpp"

namespace asio = boost::asio;

namespace evictd::wake {

OomControl::OomControl(asio::any_io_executor reactor, Wakes& wakes, const node::CgroupHierarchy& hierarchy,
                       std::string cgroup)
    : notifier_{wakes, core::WakeSource::Oom},
      hierarchy_{hierarchy},
      cgroup_{std::move(cgroup)},
      event_{std::move(reactor)} {}

void OomControl::arm(const Arming&) {
  if (event_.is_open() && !event_.is_void() && !rearm_all_) return;
  const auto directory = hierarchy_.memory(cgroup_);
  const auto opened = directory ? event_.open(*directory, "memory.oom_control", "", [this] { on_event(); })
                                : std::unexpected(directory.error());
  if (!opened) {
    event_.close();
    if (opened.error().is_gone()) return notifier_.works();  // the cgroup will come
    const bool lacking = opened.error().code == EOPNOTSUPP;
    return notifier_.failed({opened.error().message + (lacking ? "; this kernel does not tell of OOM" : "")});
  }
  notifier_.works();
  const bool rearms_all = std::exchange(rearm_all_, false);
  if (std::exchange(was_registered_, true)) notifier_.re_registered(rearms_all ? self_test_failed : cgroup_made_anew);
}

void OomControl::on_event() {
  // A cgroup's last word is no news of memory.
  if (event_.is_void()) return event_.close();
  notifier_.wake(fmt::format("{} is out of memory", cgroup_));
}

std::vector<SourceStatus> OomControl::status() const {
  return {notifier_.status("oom " + cgroup_, event_.is_open() ? "armed" : "waiting: no such cgroup")};
}

}  // namespace evictd::wake
