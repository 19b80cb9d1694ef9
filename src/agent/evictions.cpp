#include "agent/evictions.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

#include "agent/cluster_report.hpp"
#include "agent/coming_back.hpp"
#include "agent/explanation.hpp"
#include "async/spawn.hpp"
#include "core/local_storage.hpp"
#include "core/pressure.hpp"
#include "core/signal.hpp"
#include "core/threshold.hpp"
#include "core/usage.hpp"
#include "os/crash_point.hpp"
#include "os/log.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::agent {
namespace {

/// Crash points between a step and its being saved, by the index of evict::Progress.
constexpr std::array<std::string_view, 8> unsaved_names{"killed-unsaved",  "released-unsaved", "failed-unsaved",
                                                        "delayed-unsaved", "gone-unsaved",     "cleaned-unsaved",
                                                        "braked-unsaved",  "asked-unsaved"};

/// Only what lies on a disk outlives the processes.
evict::Afterwards afterwards(const core::EvictionCause& cause) {
  const auto* signal = std::get_if<core::Signal>(&cause);
  const bool disk =
      std::holds_alternative<core::LocalStorageLimit>(cause) || (signal != nullptr && core::is_disk(*signal));
  if (disk) return evict::Afterwards::remove_all;
  const auto* displacement = std::get_if<core::Displacement>(&cause);
  const bool machine_goes_down = displacement != nullptr && *displacement == core::Displacement::NodeShutdown;
  return machine_goes_down ? evict::Afterwards::keep : evict::Afterwards::remove_volumes;
}

/// Where a pod is killed at once for want of memory.
std::optional<evict::Shortage> shortage_of(const evict::EvictionRecord& record) {
  const auto required = core::memory_required_at_once(record);
  if (!required) return std::nullopt;
  return evict::Shortage{.signal = record.acted->threshold.signal,
                         .required = *required,
                         .available = record.acted->observation.available,
                         .intent = record.id,
                         .message = record.message.text};
}

/// Ends that are less apart are the same: StopContainer counts whole seconds, and who counts down to the end of a pod's
/// time, as a shutdown that goes on after a restart, does so from a moment before the pod was told of it.
constexpr core::Duration unlike = 1s;

core::WakeSource source_of(core::Displacement cause) {
  return cause == core::Displacement::Preemption ? core::WakeSource::Preemption : core::WakeSource::Shutdown;
}

void note_progress(evict::EvictionRecord& record, const evict::Progress& progress) {
  if (const auto* killed = std::get_if<evict::ContainersKilled>(&progress)) {
    record.killed = true;
    record.held = killed->held;
  } else if (std::holds_alternative<evict::MemoryReleased>(progress)) {
    record.released = true;
  } else if (std::holds_alternative<evict::PodGone>(progress)) {
    record.gone = true;
  } else if (const auto* braked = std::get_if<evict::Braked>(&progress)) {
    record.given_time = braked->phase == evict::Braked::Phase::held ? evict::GivenTime::now : evict::GivenTime::over;
  }
}

}  // namespace

Evictions::Evictions(asio::any_io_executor reactor, Options options, Parts parts)
    : reactor_{std::move(reactor)},
      options_{options},
      parts_{parts},
      acts_{!options.dry_run},
      kubelet_runs_{parts.kubelet != nullptr} {}

void Evictions::only_watch(bool only_watch) {
  if (options_.dry_run || acts_ != only_watch) return;
  acts_ = !only_watch;
  pretended_.clear();
  tell_of_dry_run(core::ActingChanged{acts_});
}

void Evictions::begin(core::Eviction eviction, core::Turn& turn) {
  turn.reach(core::Stage::Decided, parts_.clock.now());
  const auto uid = eviction.pod->uid;
  eviction.message = full_message(eviction);
  auto record = parts_.log.intended(std::move(eviction), turn, !acts_);
  ++count_;
  if (!acts_) {
    pretended_.insert_or_assign(uid, record.id);
    return async::spawn(reactor_, pretend(uid, record.id), "pretending an eviction");
  }
  const auto pod = parts_.pods.find(uid);
  if (pod == nullptr) {
    parts_.log.failed(record, {"the pod left the node before it could be stopped"});
    return parts_.decisions.tell(core::CleanupEnded{uid}, turn);
  }
  os::crash_point("intended");
  stop(std::move(record), pod);
  // What is short beyond this pod's memory takes the next one at once.
  parts_.wakes.notify({core::WakeSource::Followup, "an eviction was begun", parts_.clock.now()});
}

void Evictions::displace(const core::PodPtr& pod, Displaced why, core::Duration grace_period,
                         std::move_only_function<void(bool gone)> ended) {
  const auto& uid = pod->uid;
  const auto now = parts_.clock.now();
  core::Turn turn{{.time = now, .reasons = {{source_of(why.cause), "", now}}}};
  const auto& under_way = parts_.records.under_way();
  const auto going = under_way.find(uid);
  const auto goes_by_then = [&](const evict::EvictionRecord& record) {
    const bool at_once = grace_period == core::Duration::zero();
    const bool has_time = record.given_time == evict::GivenTime::now;
    if (record.gone) return false;
    if (record.killed) return true;
    if (at_once && has_time) return false;
    const auto later = record.begun + record.grace_period - (now + grace_period);
    return later <= core::Duration::zero() || (!at_once && later < unlike);
  };
  const bool soon_enough = going != under_way.end() && goes_by_then(going->second);
  if (soon_enough) {
    if (ended) displaced_.emplace(uid, std::move(ended));
    return;
  }
  // That the machine goes down is no matter of thresholds, which are what may not be known.
  const bool acts = acts_ || (why.cause == core::Displacement::NodeShutdown && !options_.dry_run);
  auto record = parts_.log.intended(
      {.pod = pod, .cause = why.cause, .grace_period = grace_period, .message = {std::move(why.message), {}}}, turn,
      !acts);
  const auto runtime_pod = acts ? parts_.pods.find(uid) : nullptr;
  if (runtime_pod == nullptr) {
    if (acts) parts_.log.failed(record, {"the pod left the node before it could be stopped"});
    if (ended) ended(true);
    return;
  }
  if (ended) displaced_.emplace(uid, std::move(ended));
  parts_.decisions.tell(core::PodDisplaced{pod, why.cause, grace_period}, turn);
  stop(std::move(record), runtime_pod);
}

/// What becomes of the time that the pod is given stands in its spec, which the runtime does not know.
void Evictions::stop(evict::EvictionRecord record, const pods::RuntimePodPtr& listed) {
  auto completed = std::make_shared<pods::RuntimePod>(*listed);
  completed->pod = record.pod;
  const pods::RuntimePodPtr pod = std::move(completed);
  const auto uid = pod->pod->uid;
  const auto id = record.id;
  const auto then = afterwards(record.cause);
  const auto grace_period = record.grace_period;
  const bool for_memory = is_for_memory(record);
  record.runtime = pod;
  record.begun = parts_.clock.now();
  record.held = parts_.usage.held(uid);  // should evictd be killed before it says what was killed
  const evict::Reached reached{record};
  const auto shortage = shortage_of(record);
  const auto& under_way = parts_.records.under_way();
  if (const auto earlier = under_way.find(uid);
      earlier != under_way.end() && earlier->second.given_time == evict::GivenTime::now)
    overtaken_.insert_or_assign(earlier->second.id, earlier->second);
  parts_.records.begin(std::move(record));
  parts_.state.save();
  os::crash_point("kept");
  const auto report = [this, uid, id](const evict::Progress& progress) { on_progress(uid, id, progress); };
  parts_.stopper.begin(pod, grace_period, then, report, reached, shortage);
  look_for_kubelet(*pod->pod);
  if (parts_.black_box == nullptr || !for_memory) return;
  const auto* going = parts_.records.find(uid, id);
  if (going != nullptr && !going->killed) parts_.black_box->begun(pod);  // it can be read meanwhile
}

/// The message names the containers that use more than they asked for. Of memory these are read for the chosen pod
/// only.
core::EvictionMessage Evictions::full_message(const core::Eviction& eviction) const {
  if (!eviction.acted || !core::is_memory(eviction.acted->threshold.signal)) return eviction.message;
  core::PodUsage usage{.working_set = eviction.expected_release};
  return core::eviction_message(eviction.acted->threshold, eviction.acted->observation, *eviction.pod,
                                parts_.usage.with_containers(*eviction.pod, std::move(usage)));
}

/// A dry run counts the pod's memory as coming back for as long as a real cleanup may take, then as never come.
asio::awaitable<void> Evictions::pretend(std::string uid, std::uint64_t id) {
  co_await parts_.clock.sleep(options_.cleanup_timeout);
  const auto pretended = pretended_.find(uid);
  if (pretended == pretended_.end() || pretended->second != id) co_return;
  pretended_.erase(pretended);
  tell_of_dry_run(core::CleanupEnded{.uid = uid, .released = false, .only_reported = true});
}

void Evictions::tell_of_dry_run(const core::Event& event) {
  const auto now = parts_.clock.now();
  core::Turn turn{{.time = now, .reasons = {{core::WakeSource::DryRun, "", now}}}};
  parts_.decisions.tell(event, turn);
}

void Evictions::on_progress(const std::string& uid, std::uint64_t id, const evict::Progress& progress) {
  auto* record = parts_.records.find(uid, id);
  if (record == nullptr) return tell_of_hold(id, progress);
  const auto* ended = std::get_if<evict::CleanupEnded>(&progress);
  note_progress(*record, progress);
  if (std::holds_alternative<evict::Braked>(progress))
    parts_.decisions.tell(core::PodHeld{uid, record->given_time == evict::GivenTime::now}, record->turn);
  parts_.log.progress(*record, progress);
  // The step and its event are saved together: after a crash it is told exactly once.
  os::crash_point(unsaved_names[progress.index()]);
  if (ended == nullptr) parts_.state.save();
  os::crash_point(evict::name(progress));
  remember_release(*record, progress);
  if (const auto* killed = std::get_if<evict::ContainersKilled>(&progress)) {
    // Not before: a pod whose status is Failed must not run.
    report_to_cluster(*record);
    explain(*record, killed->time);
    parts_.wakes.notify({core::WakeSource::Killed, "an evicted pod's containers are dead", parts_.clock.now()});
  }
  // Held by itself alone: what holds all pods is lifted by the pass.
  if (std::holds_alternative<evict::Braked>(progress) && record->given_time == evict::GivenTime::now)
    parts_.wakes.notify({core::WakeSource::Followup, "an evicted pod is held", parts_.clock.now()});
  if (std::holds_alternative<evict::MemoryReleased>(progress))
    parts_.wakes.notify({core::WakeSource::Released, "an evicted pod's memory is back", parts_.clock.now()});
  // What waits for a pod's end does not wait for its cgroup: a kubelet may take seconds to remove that.
  if (std::holds_alternative<evict::PodGone>(progress)) return let_go(*record, true);
  if (ended == nullptr) return;
  auto over = parts_.records.end(uid, parts_.clock.now());
  parts_.state.save();
  os::crash_point("finished");
  if (over.gone) return parts_.pods.changed();  // it may run again: the wait for its cgroup ends with that, too
  let_go(std::move(over), !ended->timed_out);
}

/// A quicker eviction of the same pod took over: of this one nothing else is told any more.
void Evictions::tell_of_hold(std::uint64_t id, const evict::Progress& progress) {
  const auto overtaken = overtaken_.find(id);
  const bool ends = std::holds_alternative<evict::Braked>(progress);
  if (overtaken == overtaken_.end() || (!ends && !std::holds_alternative<evict::HooksAsked>(progress))) return;
  parts_.log.progress(overtaken->second, progress);
  if (ends) overtaken_.erase(overtaken);
}

/// In a later turn, since nothing that only explains may hold up the next kill. An evictd that is killed before that
/// leaves an eviction without its explanation.
void Evictions::explain(const evict::EvictionRecord& record, core::Instant killed) {
  if (parts_.black_box == nullptr || !is_for_memory(record) || record.runtime == nullptr) return;
  Evidence evidence{.killed = killed};
  if (record.acted && parts_.policy != nullptr)
    evidence.short_since = parts_.policy->met_since(record.acted->threshold);
  const auto tell = [this, uid = record.pod->uid, id = record.id, evidence](const BlackBox::Found& found) mutable {
    evidence.found = found;
    evidence.node_available = parts_.reports.memory_history().recent(parts_.clock.now());
    if (auto* under_way = parts_.records.find(uid, id)) return parts_.log.explained(*under_way, evidence);
    const auto over = parts_.records.evicted().find(uid);
    if (over == parts_.records.evicted().end() || over->second.record.id != id) return;
    auto record = over->second.record;  // what is noted in it nobody tells any more
    parts_.log.explained(record, evidence);
  };
  parts_.black_box->killed(*record.runtime, killed, tell);
}

void Evictions::let_go(evict::EvictionRecord record, bool gone) {
  const auto uid = record.pod->uid;
  async::spawn(reactor_, end(std::move(record), gone), "ending an eviction");
  while (auto displaced = displaced_.extract(uid)) displaced.mapped()(gone);
}

/// How long it took is what advice on thresholds rests upon. A pod that was given time takes its own.
void Evictions::remember_release(const evict::EvictionRecord& record, const evict::Progress& progress) {
  const auto* released = std::get_if<evict::MemoryReleased>(&progress);
  if (released == nullptr || !record.acted || record.grace_period > core::Duration::zero()) return;
  if (record.given_time != evict::GivenTime::none) return;
  const auto& [threshold, observation] = *record.acted;
  if (threshold.signal != core::Signal::MemoryAvailable) return;
  parts_.reports.released(released->first.value_or(released->time) - record.turn.wake.time,
                          core::required(threshold, observation.capacity, core::Enforce::value_only));
}

/// What a later eviction of the same pod gives back comes with that one's end, not with this one's.
asio::awaitable<void> Evictions::end(evict::EvictionRecord record, bool released) {
  const auto give_up = parts_.clock.now() + patience_after_the_end;
  if (released) co_await wait_for_unmount(record, give_up);
  if (released) co_await wait_for_disk(record, give_up);
  if (parts_.records.is_latest(record))
    parts_.decisions.tell(core::CleanupEnded{.uid = record.pod->uid, .released = released, .killed = record.killed},
                          record.turn);
  parts_.records.settled(record, parts_.clock.now());
  parts_.state.save();
  parts_.wakes.notify({core::WakeSource::Cleanup, "an eviction ended", parts_.clock.now()});
  parts_.pods.changed();
}

asio::awaitable<void> Evictions::finished_within(core::Duration patience) {
  stopping_ = true;
  parts_.stopper.hurry();
  const auto give_up = parts_.clock.now() + patience;
  // Of a pod that is gone at most its cgroup and its emptyDirs are left, with which the next evictd goes on.
  const auto is_going = [](const auto& entry) { return !entry.second.gone; };
  const auto& under_way = parts_.records.under_way();
  while (std::ranges::any_of(under_way, is_going) && parts_.clock.now() < give_up) co_await parts_.clock.sleep(20ms);
  for (const auto& [uid, record] : under_way)
    if (!record.gone) os::log_warning("stopping while {} is still being cleaned up", record.pod->key());
}

void Evictions::go_on() {
  const auto begun = parts_.records.under_way();  // they report while they are begun
  for (const auto& [uid, record] : begun) {
    os::log_info("{}: its eviction was begun by an earlier evictd, and is finished", record.pod->key());
    if (record.gone)
      untold_.push_back(record);
    else if (record.killed)
      report_to_cluster(record);
    const auto report = [this, uid, id = record.id](const evict::Progress& progress) {
      on_progress(uid, id, progress);
    };
    if (record.gone) let_go(record, true);
    evict::Reached reached{record};
    reached.resumed = true;
    parts_.stopper.begin(record.runtime,
                         std::max(record.begun + record.grace_period - parts_.clock.now(), core::Duration::zero()),
                         afterwards(record.cause), report, reached, {});
  }
  for (const auto& [uid, evicted] : parts_.records.evicted())
    if (evicted.record.killed) untold_.push_back(evicted.record);  // the others did not go
}

/// The cluster may not have been told of these: where it was, telling it again changes nothing. Of one that runs again
/// the Event alone is still true.
void Evictions::pods_changed(const core::PodList& /*pods*/) {
  for (const auto& record : std::exchange(untold_, {})) {
    report_to_cluster(record);
    const auto pod = parts_.pods.find(record.pod->uid);
    if (parts_.cluster != nullptr && pod != nullptr && runs_again(record, *pod))
      parts_.cluster->returned(record.pod->uid);
  }
}

std::vector<core::Releasing> Evictions::releasing() const {
  std::vector<core::Releasing> result;
  const auto release = [&](const evict::EvictionRecord& record) {
    const auto& uid = record.pod->uid;
    // Of one that is gone the processes in its cgroup were started again.
    const auto held = record.gone ? std::optional<std::int64_t>{0} : parts_.usage.coming_back(*record.runtime);
    if (!held) return;
    const auto unmounted = !record.settled && awaits_unmount(record) ? parts_.usage.held_by_tmpfs(uid) : 0;
    const auto tasks = record.gone ? std::optional<std::int64_t>{0} : parts_.usage.task_count(uid);
    result.push_back({uid, std::max(*held, unmounted), tasks, record.killed});
  };
  for (const auto& [uid, record] : parts_.records.under_way()) release(record);
  for (const auto& [uid, evicted] : parts_.records.evicted())
    if (evicted.record.gone && !evicted.ended && !parts_.records.contains(uid)) release(evicted.record);
  return result;
}

bool Evictions::lifts_fence(std::span<const core::Releasing> releasing) const {
  const auto lifts = [&](const auto& entry) { return agent::lifts_fence(entry.second, releasing); };
  return !acts_ || std::ranges::any_of(parts_.records.under_way(), lifts);
}

void Evictions::report_to_cluster(const evict::EvictionRecord& record) const {
  if (parts_.cluster == nullptr) return;
  const auto killed = record.turn.stages[core::Stage::Killed];
  parts_.cluster->evicted(eviction_report(record, killed ? record.turn.wake.time + *killed : record.begun));
}

}  // namespace evictd::agent
