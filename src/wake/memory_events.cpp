#include "wake/memory_events.hpp"

#include <fmt/format.h>

#include <expected>
#include <utility>
#include <vector>

#include "wake/memory_counters.hpp"
#include "wake/wakes.hpp"

namespace evictd::wake {

MemoryEvents::MemoryEvents(boost::asio::any_io_executor reactor, Wakes& wakes, const node::CgroupHierarchy& hierarchy,
                           std::string cgroup)
    : notifier_{wakes, core::WakeSource::MemoryEvents},
      hierarchy_{hierarchy},
      cgroup_{std::move(cgroup)},
      file_{reactor, [this](const MemoryCounters& before, const MemoryCounters& now) { changed(before, now); }},
      local_{std::move(reactor), [this](const MemoryCounters& before, const MemoryCounters& now) {
               if (now.max > before.max) say("max");
             }} {}

void MemoryEvents::arm(const Arming&) {
  const auto cgroup = hierarchy_.memory(cgroup_);
  const bool rearms_all = std::exchange(rearm_all_, false) && file_.counters();
  if (!cgroup || rearms_all) {
    file_.close();
    local_.close();
  }
  auto opened = cgroup ? file_.keep_open(*cgroup, "memory.events") : std::unexpected(cgroup.error());
  if (opened)
    if (const auto own = local_.keep_open(*cgroup, "memory.events.local"); !own) opened = std::unexpected(own.error());
  if (!opened && !opened.error().is_gone()) return notifier_.failed(opened.error());
  notifier_.works();
  if (opened.value_or(false) && std::exchange(was_open_, true))
    notifier_.re_registered(rearms_all ? self_test_failed : cgroup_made_anew);
}

void MemoryEvents::changed(const MemoryCounters& before, const MemoryCounters& now) {
  if (now.oom_kill > before.oom_kill) return say("oom_kill");
  if (now.oom > before.oom) return say("oom");
}

void MemoryEvents::say(std::string_view what) { notifier_.wake(fmt::format("{} in {}", what, cgroup_)); }

std::vector<SourceStatus> MemoryEvents::status() const {
  const auto counters = file_.counters();
  const auto local = local_.counters();
  auto status = notifier_.status("memory.events " + cgroup_, counters ? "armed" : "waiting: no such cgroup");
  if (counters)
    status.detail =
        fmt::format("max {}, oom {}, oom_kill {}", local ? local->max : 0, counters->oom, counters->oom_kill);
  return {status};
}

}  // namespace evictd::wake
