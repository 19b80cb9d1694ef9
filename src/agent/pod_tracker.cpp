#include "agent/pod_tracker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "agent/cluster_report.hpp"
#include "async/next_turn.hpp"
#include "async/sleep.hpp"
#include "async/spawn.hpp"
#include "async/turns.hpp"
#include "core/event.hpp"
#include "evict/eviction_record.hpp"
#include "os/crash_point.hpp"
#include "os/log.hpp"
#include "os/now.hpp"
#include "pods/cgroup_name.hpp"
#include "pods/spec_source.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::agent {
namespace {

/// A pod's containers are created and started up to some seconds after its cgroup: in the order of time from behind.
constexpr std::array<core::Duration, 3> settling{2s, 500ms, 100ms};

/// What is measured of the pod. Of a container that has ended the pod's own cgroup counts what it left: its files are
/// not kept open.
node::PodCgroup cgroup_of(const pods::RuntimePod& pod) {
  node::PodCgroup cgroup{.uid = pod.pod->uid, .path = pod.cgroup};
  for (const auto& container : pod.containers) {
    const bool is_over = !pod.cgroup.empty() && container.state == pods::ContainerState::Exited;
    if (!is_over && !container.cgroup.empty()) cgroup.containers.push_back(container.cgroup);
  }
  return cgroup;
}

/// Most lists say what the one before has said.
bool has_new_sandbox(const std::vector<pods::RuntimePodPtr>& before, const std::vector<pods::RuntimePodPtr>& now) {
  if (now == before) return false;
  std::set<std::string_view> known;
  for (const auto& pod : before) known.insert(pod->sandbox_id);
  return std::ranges::any_of(now, [&](const auto& pod) { return !known.contains(pod->sandbox_id); });
}

}  // namespace

PodTracker::PodTracker(asio::any_io_executor reactor, core::Duration refresh_interval, Parts parts)
    : reactor_{reactor}, refresh_interval_{refresh_interval}, parts_{parts}, timer_{std::move(reactor)} {}

/// What the runtime lists is completed by what the sources of specs tell.
void PodTracker::start() {
  parts_.catalog.start(*this);
  async::spawn(reactor_, list_again_and_again(), "listing the pods");
}

void PodTracker::spec_source_degraded(pods::SpecOrigin origin, const Error& error) {
  parts_.log.source_degraded(fmt::format("podSources.{}", pods::name(origin)), error);
}

void PodTracker::spec_unreadable(pods::SpecOrigin /*origin*/, const Error& error) {
  os::log_warning("{}", error.message);
}

void PodTracker::stop() {
  stopping_ = true;
  parts_.catalog.stop();
  timer_.cancel();
}

asio::awaitable<void> PodTracker::list_again_and_again() {
  while (!stopping_) {
    due_ = core::Instant::max();
    if (parts_.runtime.connected()) co_await list();
    due(os::now() + until_next_list());
    co_await wait_until_due();
  }
}

asio::awaitable<void> PodTracker::list() {
  if (std::exchange(missed_event_, false)) parts_.events.reconnect();
  // Whatever was told before it began, the list has.
  const bool was_told = std::exchange(had_event_, false);
  if (was_told) pace_.begun(os::now());
  const bool was_heard = parts_.events.heard() && !was_told;
  const auto before = parts_.pods.runtime_pods();
  const auto asked = parts_.clock.now();
  os::crash_point("listing");
  auto listed = co_await parts_.pods.fetch();
  if (listed) {
    co_await open_cgroups_of(listed->news());
    parts_.pods.publish(*std::move(listed));
    take_list({}, asked);
  } else {
    take_list(std::unexpected(std::move(listed.error())), asked);
  }
  if (!was_heard || had_event_ || !has_new_sandbox(before, parts_.pods.runtime_pods())) co_return;
  // Its event may be on its way.
  missed_event_ = true;
  due(os::now() + settling.front());
}

/// What a list of thousands of pods takes is parted into turns of the reactor: before the list counts for anybody, the
/// files of the new pods are opened, unless they are few. A cgroup that the runtime did not tell is looked for with the
/// list.
asio::awaitable<void> PodTracker::open_cgroups_of(const std::vector<pods::RuntimePodPtr>& pods) {
  constexpr std::size_t at_a_time = 128;
  if (pods.size() > at_a_time) co_await async::next_turn(reactor_);
  std::vector<node::PodCgroup> added;
  for (const auto& pod : pods)
    if (auto cgroup = cgroup_of(*pod); !cgroup.path.empty() && !parts_.cgroups.knows(cgroup))
      added.push_back(std::move(cgroup));
  if (added.size() <= at_a_time) co_return;
  for (auto left = std::span{added}; !left.empty();) {
    const auto some = left.first(std::min(left.size(), at_a_time));
    parts_.cgroups.add(some);
    left = left.subspan(some.size());
    co_await async::next_turn(reactor_);
  }
}

/// A list begins then at the latest: at once where none is under way.
void PodTracker::due(core::Instant time) {
  due_ = std::min(due_, time);
  timer_.expires_at(due_);
}

asio::awaitable<void> PodTracker::wait_until_due() {
  while (!stopping_ && os::now() < due_) co_await async::wait(timer_);
}

core::Duration PodTracker::until_next_list() {
  if (refreshes_due_ > 0) return std::min(settling[static_cast<std::size_t>(--refreshes_due_)], refresh_interval_);
  // What could not be had is asked for again.
  const bool has_all = error_.empty() && parts_.pods.is_complete();
  return parts_.events.heard() && has_all ? told_interval : refresh_interval_;
}

void PodTracker::specs_changed() {
  if (!listed_) return;
  publish();
  if (parts_.cluster != nullptr) compare_statuses(parts_.evictions, parts_.catalog, *parts_.cluster);
  parts_.storage.limits_changed();
}

void PodTracker::changed() {
  // Until the first listing everybody would be unlisted.
  if (listed_) look_again_at_unlisted();
  if (parts_.events.heard()) return await_event();
  // In the middle of settling the next refresh is at most 100 ms away: a burst of new pods is listed together.
  const bool at_once = refreshes_due_ < 2;
  refreshes_due_ = 3;
  if (at_once) due(os::now());
}

/// The runtime will tell of the pod when it knows it. A list shows whether it did.
void PodTracker::await_event() {
  unsettled_until_ = parts_.clock.now() + 3s;
  const auto later = os::now() + settling.front();
  if (due_ < later) refreshes_due_ = std::max(refreshes_due_, 1);
  due(later);
}

void PodTracker::on_runtime_event() {
  had_event_ = true;
  missed_event_ = false;
  refreshes_due_ = 0;  // it will go on telling
  due(pace_.next(os::now()));
}

void PodTracker::take_list(const Result<void>& result, core::Instant asked) {
  if (!result) {
    if (error_ != result.error().message) os::log_warning("{}", result.error().message);
    error_ = result.error().message;
    return;
  }
  error_.clear();
  listed_ = true;
  const auto completed = parts_.catalog.complete(parts_.pods.pods());
  parts_.unlisted.remember(*completed);
  for (const auto& warning : parts_.pods.take_warnings()) os::log_warning("{}", warning.message);
  const bool is_new = completed != completed_;
  const bool others = is_new ? parts_.unlisted.look(*this) : parts_.unlisted.look_again(*this);
  if (others || is_new || is_provisional_) {
    publish();
  } else {
    parts_.volumes.look_again(*completed);
    announce();
  }
  find_returned(asked);
  find_returned_unlisted();
  parts_.storage.limits_changed();
  if (listing_first_.listed(asked))
    parts_.wakes.notify({core::WakeSource::Pods, "the list of pods that was waited for", parts_.clock.now()});
}

void PodTracker::list_for_pass() {
  due(os::now());
  async::spawn(reactor_, end_wait_for_list(), "waiting for a list of pods");
}

void PodTracker::await_start() {
  if (!parts_.events.heard()) due(os::now() + 25ms);
}

asio::awaitable<void> PodTracker::end_wait_for_list() {
  co_await parts_.clock.sleep(ListingFirst::patience);
  if (listing_first_.is_waiting())
    parts_.wakes.notify({core::WakeSource::Pods, "a list of pods was waited for", parts_.clock.now()});
}

/// What is inferred of a pod that is not listed follows from its processes, which come after its cgroup.
void PodTracker::look_at_unlisted() {
  const bool may_be_some = !parts_.unlisted.pods().empty() || parts_.clock.now() < unsettled_until_;
  if (listed_ && may_be_some) look_again_at_unlisted();
}

void PodTracker::look_again_at_unlisted() {
  if (parts_.unlisted.look_again(*this)) publish();
  find_returned_unlisted();
}

void PodTracker::read_again() {
  constexpr core::Duration pause = 5s;
  const auto now = parts_.clock.now();
  // A list that is not made ready for yet comes in a turn of its own.
  if (!parts_.events.heard() || now - read_again_ < pause || !parts_.usage.is_ready_for(pods_)) return;
  read_again_ = now;
  parts_.usage.prepare_again(pods_);
}

bool PodTracker::contains(const pods::NamedUid& named) const {
  const auto listed = parts_.pods.find(named);
  return listed != nullptr && (!listed->cgroup.empty() || !listed->cgroup_parent.empty());
}

/// A list that was asked for before the cleanup's end may show a pod as it ran before the eviction.
void PodTracker::find_returned(core::Instant asked) {
  for (const auto& uid : parts_.evictions.ended_before(asked, parts_.clock.now())) {
    const auto pod = parts_.pods.find(uid);
    const auto& record = parts_.evictions.evicted().at(uid).record;
    if (pod == nullptr) continue;
    // The kill may not have ended all of its processes: then it is as the runtime says.
    const bool has_processes = !record.gone && !parts_.cgroups.is_empty_or_gone(uid).value_or(true);
    if (has_processes ? pods::runs(*pod) : runs_again(record, *pod)) returned(record);
  }
}

/// After a look at them, which takes nothing that an eviction left for such a pod.
void PodTracker::find_returned_unlisted() {
  const auto& evicted = parts_.evictions.evicted();
  for (const auto& unlisted : parts_.unlisted.pods())
    if (const auto found = evicted.find(unlisted->pod->uid);
        found != evicted.end() && found->second.ended && !found->second.returned)
      returned(found->second.record);
}

/// A kubelet that has not learnt of the eviction, say, started it: then it is a pod like any other, and goes if it has
/// to.
void PodTracker::returned(const evict::EvictionRecord& record) {
  const auto& pod = *record.pod;
  os::log_info("{}: {}", pod.key(), record.killed ? "was evicted and runs again" : "could not be evicted and runs on");
  parts_.evictions.returned(pod.uid);
  if (parts_.cluster != nullptr) parts_.cluster->returned(pod.uid);
  const auto now = parts_.clock.now();
  const char* detail = record.killed ? "an evicted pod runs again" : "a pod that could not be evicted runs on";
  core::Turn turn{{.time = now, .reasons = {{core::WakeSource::Pods, detail, now}}}};
  parts_.decisions.tell(core::PodReturned{pod.uid}, turn);
  parts_.wakes.notify(turn.wake.reasons.front());
}

void PodTracker::publish() {
  async::Turns::doing("a new list of pods");
  name_running();
  follow_cgroups();
  completed_ = parts_.catalog.complete(parts_.pods.pods());
  auto pods = std::make_shared<core::PodList>(*parts_.volumes.complete(completed_, *this));
  for (const auto& warning : parts_.catalog.take_warnings()) os::log_warning("{}", warning.message);
  inferred_ = add_unlisted(*pods);
  pods_ = std::move(pods);
  announce();
}

/// Tells everybody which pods there are now: also after a list in which nothing is new, for some go by the time as
/// well. Whoever makes ready for them hears of it a little later.
void PodTracker::announce() {
  async::Turns::doing("a list of pods");
  const auto now = parts_.clock.now();
  core::Turn turn{{.time = now, .reasons = {{core::WakeSource::Pods, "the runtime's list changed", now}}}};
  parts_.decisions.tell(core::PodsChanged{pods_, inferred_}, turn);
  parts_.storage.keep_only(*pods_);
  if (listed_)
    for (auto* listener : listeners_) listener->pods_changed(*pods_);
  parts_.state.save();
  if (!std::exchange(will_make_ready_, true)) async::spawn(reactor_, make_ready(), "making ready for new pods");
}

/// Of a thousand pods that takes milliseconds, for which no wake-up waits: a pass that comes before reads what it needs
/// by itself.
asio::awaitable<void> PodTracker::make_ready() {
  co_await async::next_turn(reactor_);
  will_make_ready_ = false;
  if (stopping_) co_return;
  async::Turns::doing("making ready for new pods");
  const auto now = parts_.clock.now();
  const bool is_read_by_passes = parts_.events.heard() && now - read_again_ < told_interval;
  if (!is_read_by_passes || !parts_.usage.is_ready_for(pods_)) {
    parts_.usage.prepare_again(pods_);
    read_again_ = now;
  }
  if (listed_)
    for (auto* listener : later_listeners_) listener->pods_changed(*pods_);
  parts_.storage.watch(*parts_.pods.pods());
}

/// Whose cgroups are read from now on. A pod that is being evicted leaves the runtime's list before its memory is back:
/// its cgroup is read until then. Its end is no news of the list, and neither is the cgroup of a pod that has none yet.
void PodTracker::follow_cgroups() {
  is_provisional_ = false;
  std::vector<node::PodCgroup> cgroups;
  for (const auto& pod : parts_.pods.runtime_pods()) {
    cgroups.push_back(cgroup_of(*pod));
    if (!pod->cgroup.empty()) continue;
    cgroups.back().path = parts_.unlisted.cgroup_of(pod->pod->uid);
    is_provisional_ = true;
  }
  for (const auto& pod : parts_.unlisted.pods()) cgroups.push_back(cgroup_of(*pod));
  for (const auto& [uid, record] : parts_.evictions.under_way()) {
    if (std::ranges::find(cgroups, uid, &node::PodCgroup::uid) != cgroups.end()) continue;
    if (record.runtime != nullptr) cgroups.push_back(cgroup_of(*record.runtime));
    is_provisional_ = true;
  }
  parts_.cgroups.sync(cgroups);
}

/// Adds the pods that no list names, and what their cgroups tell of those of which the runtime told no more than the
/// name. By uid: those of which too little is known to say that they are not critical.
std::set<std::string, std::less<>> PodTracker::add_unlisted(core::PodList& pods) const {
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

/// A pod of which the runtime did not say where it is has the cgroup that bears its uid.
void PodTracker::name_running() {
  running_.clear();
  for (const auto& pod : parts_.pods.runtime_pods()) {
    auto& running = running_[pod->pod->uid];
    running = pod;
    auto cgroup = pod->cgroup.empty() ? parts_.unlisted.cgroup_of(pod->pod->uid) : std::string{};
    if (cgroup.empty()) continue;
    auto completed = std::make_shared<pods::RuntimePod>(*pod);
    completed->cgroup = std::move(cgroup);
    running = std::move(completed);
  }
  for (const auto& pod : parts_.unlisted.pods()) running_.emplace(pod->pod->uid, pod);
}

pods::RuntimePodPtr PodTracker::find(std::string_view uid) const {
  const auto found = running_.find(uid);
  return found == running_.end() ? nullptr : found->second;
}

std::int64_t PodTracker::largest_stray() const {
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

}  // namespace evictd::agent
