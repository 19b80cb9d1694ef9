// What the agent keeps up to date between passes: the pods, their files, the images.
#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/agent.hpp"
#include "agent/eviction_record.hpp"
#include "agent/inferred_volumes.hpp"
#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/event.hpp"
#include "core/local_storage.hpp"
#include "core/pod.hpp"
#include "cri/image_filesystem.hpp"
#include "host/log.hpp"
#include "host/turns.hpp"
#include "node/pod_cgroups.hpp"
#include "node/pod_directories.hpp"
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

}  // namespace

asio::awaitable<void> Agent::watch_pods() {
  while (!stopping_) {
    if (parts_.runtime.connected()) {
      const auto asked = now();
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
             local_storage_timer_.cancel();  // limits may have come
           },
       .degraded =
           [this](pods::SpecOrigin origin, const Error& error) {
             parts_.recorder.source_degraded(fmt::format("podSources.{}", pods::name(origin)), error);
           },
       .cannot_read = [](pods::SpecOrigin, const Error& error) { host::log_warning("{}", error.message); }});
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
    if (pods_error_ != result.error().message) host::log_warning("{}", result.error().message);
    pods_error_ = result.error().message;
    return;
  }
  pods_error_.clear();
  listed_once_ = true;
  for (const auto& warning : parts_.pods.take_warnings()) host::log_warning("{}", warning.message);
  find_unlisted();
  publish_pods();
  kill_again(asked);
  local_storage_timer_.cancel();
}

/// Until the first listing everybody would be unlisted.
bool Agent::find_unlisted() {
  return parts_.unlisted.look([&](std::string_view uid) {
    return parts_.pods.find(uid) != nullptr || evictions_.contains(uid) || evicted_pods_.contains(uid);
  });
}

/// Tells everybody which pods there are now.
void Agent::publish_pods() {
  host::Turns::doing("a new list of pods");
  std::vector<node::PodCgroup> cgroups;
  for (const auto& pod : parts_.pods.runtime_pods()) cgroups.push_back({pod->pod->uid, pod->cgroup});
  for (const auto& pod : parts_.unlisted.pods()) cgroups.push_back({pod->pod->uid, pod->cgroup});
  keep_victims(cgroups);
  parts_.cgroups.sync(cgroups);
  auto pods = std::make_shared<core::PodList>(
      *with_inferred_volumes(parts_.catalog.complete(parts_.pods.pods()), options_.pod_roots));
  for (const auto& warning : parts_.catalog.take_warnings()) host::log_warning("{}", warning.message);
  parts_.pod_disk.keep_only(names_of(*pods));
  for (const auto& pod : parts_.unlisted.pods()) pods->push_back(parts_.catalog.identify(pod->pod));
  parts_.usage.prepare(pods);
  Turn turn{{.time = now(), .reasons = {{"pods", "the runtime's list changed", now()}}}};
  tell(core::PodsChanged{pods}, turn);
  pods_ = pods;
  if (on_pods_ && listed_once_) on_pods_(*pods);
  arming_.files = files_of(*parts_.pods.pods());
  arm();
  changed();
}

/// Whoever started an evicted pod, a kubelet that has not learnt of the eviction say, starts its containers again. In a
/// list that was asked for while the eviction was under way it runs as it did before.
void Agent::kill_again(core::Instant listed) {
  std::erase_if(evicted_pods_, [](const auto& entry) { return entry.second.until <= now(); });
  for (const auto& pod : parts_.pods.runtime_pods()) {
    const auto evicted = evicted_pods_.find(pod->pod->uid);
    const bool runs = std::ranges::any_of(pod->containers, [](const pods::RuntimeContainer& container) {
      return container.state == pods::ContainerState::Running;
    });
    if (evicted == evicted_pods_.end() || !runs || evictions_.contains(pod->pod->uid)) continue;
    if (listed <= evicted->second.ended) continue;
    auto record = evicted->second.record;
    record.turn = Turn{{.time = now(), .reasons = {{"pods", "an evicted pod runs again", now()}}}};
    record.killed = record.released = false;
    record.grace_period = {};
    record.held = 0;
    begin_eviction(std::move(record), pod, core::Duration::zero());
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
      co_await parts_.usage.measure_disk(limited);
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
      host::log_warning("{}; until it is known, images count as lying on nodefs", found.error().message);
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
    if (auto path = parts_.cgroups.path(uid)) cgroups.push_back({uid, *std::move(path)});
  }
}

}  // namespace evictd::agent
