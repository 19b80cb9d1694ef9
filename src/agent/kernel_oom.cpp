#include "agent/kernel_oom.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/eviction_order.hpp"
#include "core/signal.hpp"
#include "os/kept_file.hpp"
#include "os/numbers.hpp"

namespace evictd::agent {
namespace {

/// Where `cgroup` begins in `path` as some of its parts: the kernel's paths may have more in front, where evictd sees
/// only a part of the tree.
std::optional<std::size_t> place_in(std::string_view path, std::string_view cgroup) {
  if (cgroup.empty() || cgroup == "/") return std::nullopt;
  for (auto place = path.find(cgroup); place != std::string_view::npos; place = path.find(cgroup, place + 1)) {
    const auto end = place + cgroup.size();
    if (end == path.size() || path[end] == '/') return place;
  }
  return std::nullopt;
}

}  // namespace

KernelOom::KernelOom(const boost::asio::any_io_executor& reactor, Parts parts)
    : parts_{std::move(parts)},
      v2_{parts_.hierarchy.version() == node::CgroupVersion::v2},
      first_timer_{reactor},
      look_timer_{reactor},
      flush_timer_{reactor},
      all_{reactor, [this](const wake::MemoryCounters& before, const wake::MemoryCounters& now) {
             if (now.oom_kill > before.oom_kill) look_soon();
           }} {}

void KernelOom::pods_changed(const core::PodList& pods) {
  watch_all();
  // Where nothing else tells of v1's counters, this is when they are looked at: before those of the gone are forgotten.
  if (!v2_ && !parts_.has_log) look();
  ++list_;
  unread_.clear();
  for (const auto& pod : pods) {
    const auto runs = parts_.pods.find(pod->uid);
    if (!runs) continue;
    if (v2_) {
      const auto single = runs->containers.size() == 1 ? std::string_view{runs->containers.front().name} : "";
      add(runs->cgroup, pod->uid, single);
    } else {
      for (const auto& container : runs->containers)
        if (container.state != pods::ContainerState::Exited) add(container.cgroup, pod->uid, container.name);
    }
  }
  std::erase_if(counters_, [&](const auto& entry) { return entry.second.list != list_; });
  read_first();
  const auto now = parts_.clock.now();
  std::erase_if(recent_,
                [&](const auto& entry) { return !entry.second.pending && entry.second.since + parts_.window <= now; });
}

void KernelOom::watch_all() {
  if (!v2_) return;
  const auto cgroup = parts_.hierarchy.memory(parts_.pods_cgroup);
  // Where it cannot be read the source "memory.events" says why.
  if (cgroup) static_cast<void>(all_.keep_open(*cgroup, "memory.events"));
}

void KernelOom::add(const std::string& cgroup, std::string_view uid, std::string_view container) {
  if (cgroup.empty()) return;
  auto& counter = counters_.try_emplace(cgroup).first->second;
  if (std::exchange(counter.list, list_) == list_) return;
  if (counter.uid.empty()) counter.uid = uid;
  counter.container = container;
  if (!counter.last) unread_.push_back(cgroup);
}

/// What was counted before it was read first is nobody's news. One that is not there yet is tried again with the next
/// list.
void KernelOom::read_first() {
  for (std::size_t read = 0; read < first_at_a_time && !unread_.empty(); ++read) {
    const auto cgroup = std::move(unread_.back());
    unread_.pop_back();
    const auto count = read_counter(cgroup);
    if (const auto counter = counters_.find(cgroup); count && counter != counters_.end())
      counter->second.last = counter->second.settled = *count;
  }
  if (unread_.empty()) return;
  first_timer_.expires_after({});
  first_timer_.async_wait([this](boost::system::error_code error) {
    if (!error) read_first();
  });
}

std::optional<std::int64_t> KernelOom::read_counter(const std::string& cgroup) const {
  const auto file = parts_.hierarchy.memory_file(cgroup, v2_ ? "memory.events" : "memory.oom_control");
  std::array<char, 1024> buffer;
  const auto table = file ? file->read(buffer) : std::unexpected(file.error());
  return table ? os::find_number(*table, "oom_kill") : std::nullopt;
}

bool KernelOom::killed(const core::OomKill& kill) {
  const auto place = find(kill);
  if (!place) {
    // Of no pod, of one that is not listed yet, or it was not said whose.
    if (kill.cgroup.empty()) look_soon();
    return kill.shortage == core::OomShortage::Node;
  }
  const bool of_node = kill.shortage == core::OomShortage::Node ||
                       (kill.shortage == core::OomShortage::Limit && !kill.limited.empty() && !place->own_limit);
  const auto counter = counters_.find(place->counted);
  if (counter == counters_.end() || is_news(counter->second, kill.pid)) {
    KernelKill told{.pod = place->pod, .container = place->container, .kill = kill};
    if (of_node)
      told.shortage = "node";
    else if (place->own_limit)
      told.shortage = "limit";
    tell(std::move(told));
  }
  return of_node;
}

/// The pod whose own cgroup or container's comes first in the path: what comes behind that a container may have named.
std::optional<KernelOom::Place> KernelOom::find(const core::OomKill& kill) const {
  if (kill.cgroup.empty()) return std::nullopt;
  std::optional<Place> found;
  std::size_t first = std::string_view::npos;
  for (const auto& pod : *parts_.policy.pods()) {
    const auto runs = parts_.pods.find(pod->uid);
    if (!runs) continue;
    const auto own = place_in(kill.cgroup, runs->cgroup);
    if (own && *own < first) {
      first = *own;
      found = Place{.pod = pod,
                    .counted = runs->cgroup,
                    .container = {},
                    .own_limit = place_in(kill.limited, runs->cgroup).has_value()};
    }
    for (const auto& container : runs->containers) {
      const auto place = place_in(kill.cgroup, container.cgroup);
      const bool of_found = found && found->pod == pod;
      if (!place || (*place >= first && !of_found)) continue;
      const bool own_limit = (of_found && found->own_limit) || place_in(kill.limited, container.cgroup).has_value();
      first = std::min(first, *place);
      found = Place{.pod = pod,
                    .counted = v2_ && !runs->cgroup.empty() ? runs->cgroup : container.cgroup,
                    .container = container.name,
                    .own_limit = own_limit};
    }
  }
  return found;
}

/// Whether the log tells of a kill that was not told yet; it is counted as told.
bool KernelOom::is_news(Counter& counter, std::int64_t pid) {
  const auto now = parts_.clock.now();
  if (counter.unnamed > 0 && now <= counter.unnamed_until) {
    --counter.unnamed;
    return false;
  }
  ++counter.settled;
  std::erase_if(counter.pids, [&](const auto& entry) { return entry.second + parts_.window <= now; });
  return counter.pids.try_emplace(pid, now).second;
}

void KernelOom::look() {
  look_due_ = false;
  looked_ = parts_.clock.now();
  for (auto& [cgroup, counter] : counters_) count(cgroup, counter);
}

void KernelOom::count(const std::string& cgroup, Counter& counter) {
  const auto now = counter.last ? read_counter(cgroup) : std::nullopt;
  if (!now) return;
  if (*now < *counter.last) counter.settled = 0;  // the cgroup was made again
  counter.last = *now;
  const auto missing = *now - counter.settled;
  if (missing <= 0) return;
  counter.settled = *now;
  counter.unnamed = missing;
  counter.unnamed_until = parts_.clock.now() + parts_.window;
  const auto runs = parts_.pods.find(counter.uid);
  if (!runs) return;
  tell({.pod = runs->pod,
        .container = counter.container,
        .kill = {},
        .kills = static_cast<std::uint32_t>(std::min<std::int64_t>(missing, 1'000'000))});
}

/// Whoever has been told of already says no more than how many came within the window.
void KernelOom::tell(KernelKill kill) {
  const auto now = parts_.clock.now();
  auto& recent = recent_[fmt::format("{} {}", kill.pod->uid, kill.shortage)];
  if (!recent.pending && recent.since + parts_.window <= now) {
    recent.since = now;
    recent.told = 0;
  }
  if (recent.told < told_singly) {
    ++recent.told;
    recent.own_choice = kill.own_choice = is_own_choice(*kill.pod);
    parts_.log.kernel_oom(kill);
    return;
  }
  kill.own_choice = recent.own_choice;  // a ranking for each would be dear
  if (recent.pending) kill.kills += recent.pending->kills;
  recent.pending = std::move(kill);
  if (std::exchange(flush_due_, true)) return;
  flush_timer_.expires_after(parts_.window);
  flush_timer_.async_wait([this](boost::system::error_code error) {
    if (!error) flush();
  });
}

void KernelOom::flush() {
  flush_due_ = false;
  for (auto& [key, recent] : recent_)
    if (const auto pending = std::exchange(recent.pending, std::nullopt)) parts_.log.kernel_oom(*pending);
  recent_.clear();
}

/// By what the pods held when they were looked at last, which is before the kill.
bool KernelOom::is_own_choice(const core::Pod& pod) const {
  if (parts_.records.contains(pod.uid)) return true;
  // By now the list may already have it as one of which nothing runs.
  if (parts_.order != nullptr && parts_.order->likeliest() == pod.uid) return true;
  const auto& pods = parts_.policy.pods();
  for (const auto& placed : parts_.policy.ranking(core::Signal::MemoryAvailable, *pods,
                                                  parts_.usage.memory_as_listed(pods), parts_.clock.now()))
    if (core::may_go(placed.ranked)) return placed.ranked.pod->uid == pod.uid;
  return false;
}

void KernelOom::look_soon() {
  if (std::exchange(look_due_, true)) return;
  const auto now = parts_.clock.now();
  const core::Duration settle = parts_.has_log ? log_delay : std::chrono::milliseconds(10);
  const auto paced = looked_ == core::Instant::min() ? core::Duration{} : looked_ + between_looks - now;
  look_timer_.expires_after(std::max(settle, paced));
  look_timer_.async_wait([this](boost::system::error_code error) {
    if (!error) look();
  });
}

}  // namespace evictd::agent
