// What becomes of a decision that a pod must go: from the intent to the end of the cleanup.
#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "agent/agent.hpp"
#include "agent/cluster_report.hpp"
#include "agent/coming_back.hpp"
#include "agent/eviction_record.hpp"
#include "async/spawn.hpp"
#include "core/action.hpp"
#include "core/displacement.hpp"
#include "core/duration.hpp"
#include "core/event.hpp"
#include "core/eviction_message.hpp"
#include "core/local_storage.hpp"
#include "core/pod.hpp"
#include "core/signal.hpp"
#include "core/threshold.hpp"
#include "core/usage.hpp"
#include "evict/evictor.hpp"
#include "evict/progress.hpp"
#include "os/crash_point.hpp"
#include "os/log.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::agent {
namespace {

core::Instant now() { return std::chrono::steady_clock::now(); }

/// Crash points between a step and its being saved, by the index of evict::Progress.
constexpr std::array<std::string_view, 4> unsaved_names{"killed-unsaved", "released-unsaved", "failed-unsaved",
                                                        "cleaned-unsaved"};

/// Only what lies on a disk outlives the processes.
evict::Afterwards afterwards(const core::EvictionCause& cause) {
  const auto* signal = std::get_if<core::Signal>(&cause);
  const bool disk = std::holds_alternative<core::LocalStorageLimit>(cause) ||
                    (signal != nullptr && core::condition_of(*signal) == core::NodeCondition::DiskPressure);
  return disk ? evict::Afterwards::remove : evict::Afterwards::keep;
}

}  // namespace

/// The intent is recorded before anything is done to the pod; what comes of it refers to the intent by its id.
void Agent::evict(const core::Evict& action, Turn& turn) {
  turn.mark("decided");
  const auto& uid = action.pod->uid;
  auto record = parts_.recorder.intended(action, full_message(action), turn, options_.dry_run);
  ++evicted_;
  if (options_.dry_run) return pretend(std::move(record));

  const auto pod = find_pod(uid);
  if (pod == nullptr) {
    parts_.recorder.failed(record, {"the pod left the node before it could be stopped"});
    return tell(core::CleanupEnded{uid}, turn);
  }
  os::crash_point("intended");
  begin_eviction(std::move(record), pod, action.grace_period);
  if (action.acted) tell_threshold_met(action.acted->threshold);
  // What is short beyond this pod's memory takes the next one at once.
  parts_.wakes.notify({"followup", "an eviction was begun", now()});
}

void Agent::displace(const core::PodPtr& pod, Displaced why, core::Duration grace_period,
                     std::function<void(bool gone)> ended) {
  const auto& uid = pod->uid;
  Turn turn{{.time = now(), .reasons = {{std::string(core::name(why.cause)), "", now()}}}};
  const core::Evict action{
      .pod = pod, .cause = why.cause, .grace_period = grace_period, .message = {std::move(why.message), {}}};
  const auto going = evictions_.find(uid);
  const bool soon_enough = going != evictions_.end() && going->second.grace_period <= grace_period;
  if (soon_enough) {
    if (ended) displaced_.emplace(uid, std::move(ended));
    return;
  }
  auto record = parts_.recorder.intended(action, action.message, turn, options_.dry_run);
  const auto runtime_pod = options_.dry_run ? nullptr : find_pod(uid);
  if (runtime_pod == nullptr) {
    if (!options_.dry_run) parts_.recorder.failed(record, {"the pod left the node before it could be stopped"});
    if (ended) ended(true);
    return;
  }
  if (ended) displaced_.emplace(uid, std::move(ended));
  tell(core::PodDisplaced{pod, why.cause, grace_period}, turn);
  begin_eviction(std::move(record), runtime_pod, grace_period);
}

/// A pod of which the runtime did not say where it is has the cgroup that bears its uid.
pods::RuntimePodPtr Agent::find_pod(std::string_view uid) const {
  const auto pod = parts_.pods.find(uid);
  if (pod == nullptr) return parts_.unlisted.find(uid);
  auto cgroup = pod->cgroup.empty() ? parts_.unlisted.cgroup_of(uid) : std::string{};
  if (cgroup.empty()) return pod;
  auto completed = std::make_shared<pods::RuntimePod>(*pod);
  completed->cgroup = std::move(cgroup);
  return completed;
}

void Agent::begin_eviction(EvictionRecord record, const pods::RuntimePodPtr& pod, core::Duration grace_period) {
  const auto uid = pod->pod->uid;
  const auto id = record.id;
  const auto then = afterwards(record.cause);
  record.runtime = pod;
  record.begun = now();
  record.held = parts_.cgroups.usage(uid).value_or(0);  // should evictd be killed before it says what was killed
  evictions_.insert_or_assign(uid, std::move(record));
  changed();
  os::crash_point("kept");
  parts_.evictor.begin(pod, grace_period, then,
                       [this, uid, id](const evict::Progress& progress) { on_progress(uid, id, progress); });
}

/// What an earlier evictd had begun.
void Agent::continue_evictions() {
  const auto begun = evictions_;  // they report while they are begun
  for (const auto& [uid, record] : begun) {
    os::log_info("{}: its eviction was begun by an earlier evictd, and is finished", record.pod->key());
    if (record.killed) report_to_cluster(record);
    parts_.evictor.begin(
        record.runtime, std::max(record.begun + record.grace_period - now(), core::Duration::zero()),
        afterwards(record.cause),
        [this, uid, id = record.id](const evict::Progress& progress) { on_progress(uid, id, progress); },
        evict::Earlier{
            .begun = record.begun, .killed = record.killed, .released = record.released, .held = record.held});
  }
  // The cluster may not have been told of these: where it was, telling it again changes nothing.
  for (const auto& [uid, evicted] : evicted_pods_) report_to_cluster(evicted.record);
}

void Agent::report_to_cluster(const EvictionRecord& record) {
  if (parts_.cluster == nullptr) return;
  const auto killed = record.turn.stages.find("killed");
  parts_.cluster->evicted(eviction_report(
      record, killed != record.turn.stages.end() ? record.turn.wake.time + killed->second : record.begun));
}

/// Tells the reporter what the API server's watch has of the pods that were evicted.
void Agent::compare_statuses() {
  if (parts_.cluster == nullptr) return;
  const auto compare = [&](const std::string& uid) {
    if (const auto* pod = parts_.catalog.in_cluster(uid)) parts_.cluster->seen(uid, pod->phase, pod->reason);
  };
  for (const auto& [uid, record] : evictions_)
    if (record.killed) compare(uid);
  for (const auto& [uid, evicted] : evicted_pods_) compare(uid);
}

/// The message names the containers that use more than they asked for. Of memory these are read for the chosen pod
/// only.
core::EvictionMessage Agent::full_message(const core::Evict& action) const {
  if (!action.acted || !core::is_memory(action.acted->threshold.signal)) return action.message;
  core::PodUsage usage{.working_set = action.expected_release};
  return core::eviction_message(action.acted->threshold, action.acted->observation, *action.pod,
                                parts_.usage.with_containers(*action.pod, std::move(usage)));
}

/// A dry run counts the pod's memory as coming back for as long as a real cleanup may take, then as never come.
void Agent::pretend(EvictionRecord record) {
  const auto uid = record.pod->uid;
  evictions_.insert_or_assign(uid, std::move(record));
  auto timer = std::make_shared<asio::steady_timer>(reactor_, options_.cleanup_timeout);
  timer->async_wait([this, timer, uid](boost::system::error_code) {
    evictions_.erase(uid);
    Turn turn{{.time = now(), .reasons = {{"dry-run", "", now()}}}};
    tell(core::CleanupEnded{uid, false}, turn);
  });
}

void Agent::on_progress(const std::string& uid, std::uint64_t id, const evict::Progress& progress) {
  const auto found = evictions_.find(uid);
  if (found == evictions_.end() || found->second.id != id) return;  // a quicker eviction of the same pod took over
  const auto* ended = std::get_if<evict::CleanupEnded>(&progress);
  keep_progress(found->second, progress);
  parts_.recorder.progress(found->second, progress);
  // The step and its event are saved together: after a crash it is told exactly once.
  os::crash_point(unsaved_names[progress.index()]);
  if (ended == nullptr) changed();
  os::crash_point(evict::name(progress));
  remember_release(found->second, progress);
  if (std::holds_alternative<evict::ContainersKilled>(progress)) {
    // Not before: a pod that is said to have failed must not run.
    report_to_cluster(found->second);
    parts_.wakes.notify({"killed", "an evicted pod's containers are dead", now()});
  }
  if (std::holds_alternative<evict::MemoryReleased>(progress))
    parts_.wakes.notify({"released", "an evicted pod's memory is back", now()});
  if (ended == nullptr) return;
  auto record = std::move(found->second);
  evictions_.erase(found);
  remember_evicted(record);
  changed();
  os::crash_point("finished");
  async::spawn(reactor_, end_eviction(std::move(record), !ended->timed_out), "ending an eviction");
  while (auto displaced = displaced_.extract(uid)) displaced.mapped()(!ended->timed_out);
}

/// For long enough that an API server which was away is told of it by the evictd after this one as well.
void Agent::remember_evicted(const EvictionRecord& record) {
  constexpr auto remembered = 5min;
  evicted_pods_.insert_or_assign(record.pod->uid, Evicted{.record = record, .until = now() + remembered});
}

void Agent::keep_progress(EvictionRecord& record, const evict::Progress& progress) {
  if (const auto* killed = std::get_if<evict::ContainersKilled>(&progress)) {
    record.killed = true;
    record.held = killed->held;
  } else if (std::holds_alternative<evict::MemoryReleased>(progress)) {
    record.released = true;
  }
}

/// How long it took is what advice on thresholds rests upon. A pod with a grace period takes its own time.
void Agent::remember_release(const EvictionRecord& record, const evict::Progress& progress) {
  const auto* released = std::get_if<evict::MemoryReleased>(&progress);
  if (released == nullptr || !record.acted || record.grace_period > core::Duration::zero()) return;
  const auto& [threshold, observation] = *record.acted;
  if (threshold.signal != core::Signal::MemoryAvailable) return;
  memory_history_.released(released->first.value_or(released->time) - record.turn.wake.time,
                           core::required(threshold, observation.capacity, core::Enforce::value_only));
}

void Agent::tell_threshold_met(const core::Threshold& threshold) {
  if (parts_.cluster != nullptr) parts_.cluster->threshold_met(core::resource_of(threshold.signal));
}

asio::awaitable<void> Agent::end_eviction(EvictionRecord record, bool released) {
  if (released) co_await wait_for_disk(record);
  tell(core::CleanupEnded{record.pod->uid, released}, record.turn);
  const auto evicted = evicted_pods_.find(record.pod->uid);
  if (evicted != evicted_pods_.end() && evicted->second.record.id == record.id) evicted->second.ended = now();
  changed();
  parts_.wakes.notify({"cleanup", "an eviction ended", now()});
  pods_changed();
}

/// A file system has its blocks back when its journal commits (ext4: within 5 s), later than the runtime has removed
/// the layer. Until then what the pod used counts as coming back; at most for as long as the kubelet lets pass between
/// two looks at the node.
asio::awaitable<void> Agent::wait_for_disk(const EvictionRecord& record) {
  constexpr auto patience = 10s;
  if (!record.acted || afterwards(record.cause) == evict::Afterwards::keep) co_return;
  const auto signal = record.acted->threshold.signal;
  const auto wanted = record.acted->observation.available + record.expected_release / 2;
  const auto give_up = now() + patience;
  asio::steady_timer timer{reactor_};
  while (now() < give_up && !stopping_) {
    const auto reading = co_await parts_.observer.read_with_disks();
    if (reading && reading->observations[signal] && reading->observations[signal]->available >= wanted) co_return;
    timer.expires_after(200ms);
    co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
  }
}

std::vector<core::Releasing> Agent::releasing() const {
  std::vector<core::Releasing> result;
  if (options_.dry_run) return result;
  for (const auto& [uid, record] : evictions_)
    // What cannot be read is left out: while nobody knows what comes back, nobody else goes for it.
    if (const auto bytes = coming_back(parts_.cgroups, *record.runtime)) result.push_back({uid, *bytes});
  return result;
}

asio::awaitable<void> Agent::wait_for_evictions() {
  if (options_.dry_run) co_return;  // there are no cleanups
  constexpr auto patience = 5s;
  const auto give_up = now() + patience;
  asio::steady_timer timer{reactor_};
  while (!evictions_.empty() && now() < give_up) {
    timer.expires_after(20ms);
    co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  for (const auto& [uid, record] : evictions_)
    os::log_warning("stopping while {} is still being cleaned up", record.pod->key());
}

}  // namespace evictd::agent
