// What the agent keeps up to date between passes: the pods, their files, the images.
#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/agent.hpp"
#include "agent/eviction_record.hpp"
#include "async/turns.hpp"
#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/event.hpp"
#include "core/local_storage.hpp"
#include "core/pod.hpp"
#include "cri/image_filesystem.hpp"
#include "node/pod_cgroups.hpp"
#include "node/pod_directories.hpp"
#include "os/crash_point.hpp"
#include "os/log.hpp"
#include "pods/cgroup_name.hpp"
#include "pods/runtime_pod.hpp"
#include "pods/spec_source.hpp"
#include "wake/source.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::agent {
namespace {

core::Instant now() { return std::chrono::steady_clock::now(); }

std::vector<node::PodName> names_of(const core::PodList& pods) {
  std::vector<node::PodName> names;
  for (const auto& pod : pods) names.push_back({pod->uid, pod->name_space, pod->name});
  return names;
}

/// What is measured of the pod.
node::PodCgroup cgroup_of(const pods::RuntimePod& pod) {
  node::PodCgroup cgroup{.uid = pod.pod->uid, .path = pod.cgroup};
  for (const auto& container : pod.containers)
    if (!container.cgroup.empty()) cgroup.containers.push_back(container.cgroup);
  return cgroup;
}

}  // namespace

/// A disk that does not answer is told of once, and once more when it does again.
void Agent::watch_disks() {
  parts_.disk.listen({.settled =
                          [this] {
                            for (auto& reason : std::exchange(disk_reasons_, {}))
                              parts_.wakes.notify(std::move(reason));
                          },
                      .fell_silent =
                          [this](const std::string& which, const Error& error) {
                            parts_.recorder.source_degraded(which, error);
                            parts_.wakes.notify({"disk", which + " does not answer", now()});
                          },
                      .spoke_again =
                          [this](const std::string& which, const std::string& what) {
                            parts_.recorder.source_recovered(which, what);
                            parts_.wakes.notify({"disk", which + " answers again", now()});
                          }});
}

/// A wake-up trusts no number that is older than itself, and memory does not wait for a disk: so what woke this pass
/// begins another one when the disks have been read for it. Until then no disk threshold acts on the older numbers,
/// because an earlier pass had them (kubelet: thresholdsUpdatedStats).
void Agent::read_disks(const wake::Wake& wake) {
  const auto latest = std::ranges::max(wake.reasons, {}, &wake::Reason::time).time;
  if (!parts_.disk.read_since(latest)) return;
  for (const auto& reason : wake.reasons) {
    const bool known = std::ranges::any_of(disk_reasons_, [&](const wake::Reason& waiting) {
      return waiting.source == reason.source && waiting.detail == reason.detail;
    });
    if (!known) disk_reasons_.push_back(reason);
  }
}

asio::awaitable<void> Agent::watch_pods() {
  while (!stopping_) {
    if (parts_.runtime.connected()) {
      const auto asked = now();
      os::crash_point("listing");
      pods_refreshed(co_await parts_.pods.refresh(), asked);
    }
    // A pod's containers are created and started up to some seconds after its cgroup.
    constexpr std::array<core::Duration, 3> settling{2s, 500ms, 100ms};
    refresh_timer_.expires_after(
        refreshes_due_ > 0 ? std::min(settling[static_cast<std::size_t>(--refreshes_due_)], options_.refresh_interval)
                           : options_.refresh_interval);
    co_await refresh_timer_.async_wait(asio::as_tuple(asio::use_awaitable));
  }
}

/// What the sources of specs tell; what the runtime lists is completed by it.
void Agent::watch_specs() {
  parts_.catalog.start(
      {.changed =
           [this] {
             if (!listed_once_) return;
             publish_pods();
             compare_statuses();
             local_storage_timer_.cancel();  // limits may have come
           },
       .degraded =
           [this](pods::SpecOrigin origin, const Error& error) {
             parts_.recorder.source_degraded(fmt::format("podSources.{}", pods::name(origin)), error);
           },
       .cannot_read = [](pods::SpecOrigin, const Error& error) { os::log_warning("{}", error.message); }});
}

void Agent::pods_changed() {
  if (listed_once_ && find_unlisted()) publish_pods();
  // In the middle of settling the next refresh is at most 100 ms away: a burst of new pods is listed together.
  const bool at_once = refreshes_due_ < 2;
  refreshes_due_ = 3;
  if (at_once) refresh_timer_.cancel();
}

void Agent::pods_refreshed(const Result<void>& result, core::Instant asked) {
  if (!result) {
    if (pods_error_ != result.error().message) os::log_warning("{}", result.error().message);
    pods_error_ = result.error().message;
    return;
  }
  pods_error_.clear();
  listed_once_ = true;
  parts_.unlisted.remember(*parts_.catalog.complete(parts_.pods.pods()));
  for (const auto& warning : parts_.pods.take_warnings()) os::log_warning("{}", warning.message);
  find_unlisted();
  publish_pods();
  find_returned(asked);
  local_storage_timer_.cancel();
  if (listing_first_.listed(asked)) parts_.wakes.notify({"pods", "the list of pods that was waited for", now()});
}

/// Until the first listing everybody would be unlisted.
bool Agent::find_unlisted() {
  return parts_.unlisted.look([&](const pods::NamedUid& named) {
    const auto is_of = [&](const auto& entry) { return named.is_of(entry.first); };
    if (std::ranges::any_of(evictions_, is_of) || std::ranges::any_of(evicted_pods_, is_of)) return true;
    const auto listed = parts_.pods.find(named);
    return listed != nullptr && (!listed->cgroup.empty() || !listed->cgroup_parent.empty());
  });
}

/// Adds the pods that no list names, and what their cgroups tell of those of which the runtime told no more than the
/// name. By uid: those of which too little is known to say that they are not critical.
std::set<std::string, std::less<>> Agent::add_unlisted(core::PodList& pods) const {
  std::set<std::string, std::less<>> inferred;
  for (const auto& unlisted : parts_.unlisted.pods()) {
    const auto named = pods::named_uid(unlisted->cgroup.substr(unlisted->cgroup.rfind('/') + 1));
    const auto listed = named ? parts_.pods.find(*named) : nullptr;
    const auto same = [&](const core::PodPtr& pod) { return listed != nullptr && pod->uid == listed->pod->uid; };
    const auto place = std::ranges::find_if(pods, same);
    const bool is_new = place == pods.end();
    auto pod = is_new ? parts_.catalog.identify(unlisted->pod) : complete_blank(*place, *unlisted->pod);
    if (is_new ? pod == unlisted->pod : pod != *place) inferred.insert(pod->uid);
    if (is_new)
      pods.push_back(std::move(pod));
    else
      *place = std::move(pod);
  }
  return inferred;
}

/// Of the cgroups where pods lie that no list gives to a pod: what the largest of them uses.
std::int64_t Agent::largest_stray() const {
  std::int64_t largest = 0;
  for (const auto& stray : parts_.unlisted.strays()) {
    const auto is_in_it = [&](const pods::RuntimeContainer& container) {
      return container.cgroup == stray || pods::is_below(container.cgroup, stray);
    };
    const bool known = std::ranges::any_of(parts_.pods.runtime_pods(), [&](const pods::RuntimePodPtr& pod) {
      return std::ranges::any_of(pod->containers, is_in_it);
    });
    if (!known) largest = std::max(largest, parts_.cgroups.working_set_of(stray).value_or(0));
  }
  return largest;
}

/// Tells everybody which pods there are now.
void Agent::publish_pods() {
  async::Turns::doing("a new list of pods");
  std::vector<node::PodCgroup> cgroups;
  for (const auto& pod : parts_.pods.runtime_pods()) {
    cgroups.push_back(cgroup_of(*pod));
    if (auto& path = cgroups.back().path; path.empty()) path = parts_.unlisted.cgroup_of(pod->pod->uid);
  }
  for (const auto& pod : parts_.unlisted.pods()) cgroups.push_back(cgroup_of(*pod));
  keep_victims(cgroups);
  parts_.cgroups.sync(cgroups);
  auto pods = std::make_shared<core::PodList>(
      *inferred_volumes_.complete(parts_.catalog.complete(parts_.pods.pods()), [this] { publish_pods(); }));
  for (const auto& warning : parts_.catalog.take_warnings()) os::log_warning("{}", warning.message);
  parts_.pod_disk.keep_only(names_of(*pods));
  auto inferred = add_unlisted(*pods);
  parts_.usage.prepare(pods);
  Turn turn{{.time = now(), .reasons = {{"pods", "the runtime's list changed", now()}}}};
  tell(core::PodsChanged{pods, std::move(inferred)}, turn);
  pods_ = pods;
  if (on_pods_ && listed_once_) on_pods_(*pods);
  arming_.files = files_of(*parts_.pods.pods());
  arm();
  changed();
}

/// A kubelet that has not learnt of the eviction, say, starts an evicted pod again. Then it is a pod like any other,
/// and goes if it has to. A list that was asked for before the cleanup's end may show it as it ran before the eviction.
void Agent::find_returned(core::Instant asked) {
  std::erase_if(evicted_pods_, [](const auto& entry) { return entry.second.until <= now(); });
  for (auto& [uid, evicted] : evicted_pods_) {
    if (evicted.returned || !evicted.ended || asked <= *evicted.ended) continue;
    const auto pod = parts_.pods.find(uid);
    if (pod == nullptr || std::ranges::find(pod->containers, pods::ContainerState::Running,
                                            &pods::RuntimeContainer::state) == pod->containers.end())
      continue;
    evicted.returned = true;
    os::log_info("{}: was evicted and runs again", pod->pod->key());
    Turn turn{{.time = now(), .reasons = {{"pods", "an evicted pod runs again", now()}}}};
    tell(core::PodReturned{uid}, turn);
    parts_.wakes.notify(turn.wake.reasons.front());
  }
}

core::PodListPtr Agent::pods_with_limits() const {
  auto limited = std::make_shared<core::PodList>();
  for (const auto& pod : *parts_.catalog.complete(parts_.pods.pods()))
    if (core::has_local_storage_limits(*pod)) limited->push_back(pod);
  return limited;
}

std::shared_ptr<const std::vector<wake::PodFiles>> Agent::files_of(const core::PodList& pods) const {
  auto files = std::make_shared<std::vector<wake::PodFiles>>();
  for (const auto& pod : pods) {
    const node::PodName name{pod->uid, pod->name_space, pod->name};
    files->push_back({pod->uid, node::local_directories(options_.pod_roots, name)});
  }
  return files;
}

void Agent::files_changed(const std::string& uid) {
  parts_.pod_disk.mark_dirty(uid);
  local_storage_timer_.cancel();
}

/// Keeps what is known of the pods that have limits of their own, and looks at the node again when there is news.
asio::awaitable<void> Agent::watch_local_storage() {
  while (!stopping_) {
    const auto limited = pods_with_limits();
    if (!parts_.pod_disk.due(names_of(*limited), now()).empty()) {
      co_await parts_.usage.measure_disk(limited, PodUsageReader::Layers::told);
      parts_.wakes.notify({"disk", "the pods' local storage was measured", now()});
    }
    // What was marked while it was measured, or has come to the limited pods meanwhile, is measured after a breath.
    const bool again = !parts_.pod_disk.due(names_of(*pods_with_limits()), now()).empty();
    local_storage_timer_.expires_after(again ? 1s : std::min(options_.refresh_interval, parts_.pod_disk.interval()));
    co_await local_storage_timer_.async_wait(asio::as_tuple(asio::use_awaitable));
  }
}

/// The order in which images go follows from when they were seen in use. (kubelet: image GC detects every 5 min)
asio::awaitable<void> Agent::watch_images() {
  while (!stopping_) {
    if (parts_.runtime.connected()) {
      static_cast<void>(co_await parts_.reclaimer.observe_images());
      if (arming_.images.empty()) co_await find_image_filesystem();
    }
    images_timer_.expires_after(arming_.images.empty() ? core::Duration{10s} : core::Duration{5min});
    co_await images_timer_.async_wait(asio::as_tuple(asio::use_awaitable));
  }
}

asio::awaitable<void> Agent::find_image_filesystem() {
  const auto found = co_await cri::image_filesystem(parts_.runtime);
  if (!found) {
    // Asked again every 10 s.
    if (std::exchange(image_filesystem_error_, found.error().message) != found.error().message)
      os::log_warning("{}; until it is known, images count as lying on nodefs", found.error().message);
    co_return;
  }
  image_filesystem_error_.clear();
  parts_.disk.set_imagefs(found->images);
  arming_.images = found->images;
  parts_.wakes.notify({"runtime", "the image file system is known", now()});
}

/// A pod that is being evicted leaves the runtime's list before its memory is back; its cgroup is read until then.
void Agent::keep_victims(std::vector<node::PodCgroup>& cgroups) const {
  for (const auto& [uid, record] : evictions_) {
    if (std::ranges::find(cgroups, uid, &node::PodCgroup::uid) != cgroups.end()) continue;
    if (record.runtime != nullptr) cgroups.push_back(cgroup_of(*record.runtime));
  }
}

}  // namespace evictd::agent
