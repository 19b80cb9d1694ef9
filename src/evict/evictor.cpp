#include "evict/evictor.hpp"

#include <api.pb.h>

#include <algorithm>
#include <utility>

#include "async/sleep.hpp"
#include "async/spawn.hpp"
#include "async/wait_all.hpp"
#include "core/grace_period.hpp"
#include "cri/reply.hpp"
#include "evict/emptied.hpp"
#include "evict/evictor_eviction.hpp"
#include "evict/sandbox_cgroup.hpp"
#include "node/cgroup_processes.hpp"
#include "os/crash_point.hpp"
#include "os/now.hpp"
#include "pods/assemble.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::evict {
namespace {

using os::now;

std::chrono::milliseconds milliseconds(core::Duration duration) {
  return std::chrono::ceil<std::chrono::milliseconds>(duration);
}

std::vector<std::string> names_of_running(const pods::RuntimePod& pod) {
  std::vector<std::string> names;
  for (const auto& container : pod.containers)
    if (container.state != pods::ContainerState::Exited) names.push_back(container.name);
  return names;
}

pods::RuntimePodPtr with_containers(pods::RuntimePod pod, const std::vector<std::string>& sandbox_ids,
                                    const cri::v1::ListContainersResponse& listed) {
  for (const auto& container : listed.containers())
    if (std::ranges::find(sandbox_ids, container.pod_sandbox_id()) != sandbox_ids.end())
      pod.containers.push_back(
          {.id = container.id(), .name = container.metadata().name(), .state = pods::state_of(container)});
  return std::make_shared<const pods::RuntimePod>(std::move(pod));
}

constexpr core::Duration retry_pause = 100ms;  // between calls that the runtime refuses, or does not take

/// A call that the runtime takes and does not answer is not made again: it may still be carried out.
bool may_be_repeated(cri::Failure failure) {
  return failure == cri::Failure::Unavailable || failure == cri::Failure::Refused;
}

}  // namespace

std::vector<std::string> sandboxes_of(const pods::RuntimePod& pod, const RuntimeView& view) {
  if (!pod.sandbox_id.empty()) return {pod.sandbox_id};
  const auto known = view.by_pod_uid.find(pod.pod->uid);
  return known != view.by_pod_uid.end() ? known->second : std::vector<std::string>{};
}

Evictor::Evictor(asio::any_io_executor reactor, Parts parts, EvictorOptions options)
    : reactor_{std::move(reactor)},
      parts_{std::move(parts)},
      options_{options},
      killer_{reactor_,
              {.hierarchy = parts_.hierarchy,
               .pods_cgroup = parts_.pods_cgroup,
               .reaper = parts_.reaper,
               .is_protected = parts_.is_protected,
               .ready = parts_.ready}},
      look_{reactor_, parts_.runtime},
      cgroup_end_{PodCgroupEnd::Parts{
          .hierarchy = parts_.hierarchy, .pods_cgroup = parts_.pods_cgroup, .kubelet = parts_.kubelet}},
      volumes_end_{reactor_,
                   {.hierarchy = parts_.hierarchy,
                    .kubelet_root = parts_.kubelet_root,
                    .mode = options_.remove_volumes,
                    .kubelet = parts_.kubelet}},
      held_end_{reactor_,
                {.runtime = parts_.runtime,
                 .hierarchy = parts_.hierarchy,
                 .cgroups = parts_.cgroups,
                 .holder = parts_.holder,
                 .memory = parts_.memory,
                 .hooks = parts_.hooks},
                options_.held_end} {}

void Evictor::begin(pods::RuntimePodPtr pod, core::Duration grace_period, Afterwards afterwards, Report report,
                    const std::optional<Reached>& reached, const std::optional<Shortage>& shortage) {
  auto eviction = std::make_shared<Eviction>(Eviction{
      .pod = std::move(pod), .grace_period = grace_period, .afterwards = afterwards, .report = std::move(report)});
  if (reached) {
    eviction->begin = reached->begun;
    eviction->killed = reached->killed;
    eviction->released = reached->released;
    eviction->held_before = reached->held;
    eviction->gone = reached->gone;
  }
  if (eviction->gone) return async::spawn(reactor_, run(std::move(eviction)), "an eviction");
  const bool is_first = !takes_over(eviction) && !(reached && reached->resumed);
  eviction->runs_hooks = is_first;
  make_stop(*eviction, grace_period);
  if (eviction->held_before == 0) eviction->held_before = parts_.cgroups.usage(eviction->pod->pod->uid).value_or(0);
  const bool resumed = reached && reached->resumed;
  if (shortage && !resumed && grace_period == core::Duration::zero() && held_end_.wants(*eviction->pod, *shortage))
    return async::spawn(reactor_, hold_and_run(std::move(eviction), *shortage, is_first), "an eviction");
  kill_at_once(*eviction);
  if (resumed && reached->given_time == GivenTime::now)
    eviction->report(Braked{
        .phase = Braked::Phase::killed, .why = "evictd was started anew", .frozen = !options_.held_end.time.brakes()});
  async::spawn(reactor_, run(std::move(eviction)), "an eviction");
}

/// Of the containers that the pod is known to have.
void Evictor::make_stop(Eviction& eviction, core::Duration grace_period) const {
  const ContainerStop::Parts parts{reactor_, parts_.runtime, parts_.hierarchy};
  eviction.containers.emplace(
      parts, eviction.pod,
      ContainerStop::Options{
          .grace_period = grace_period, .stop_timeout = options_.stop_timeout, .runs_hooks = eviction.runs_hooks});
}

/// Where it gets no time, and evictd is to do it.
void Evictor::kill_at_once(Eviction& eviction) {
  const auto killed_here = targets(eviction);  // also finds the sandbox's cgroup, for the memory that is watched
  if (!options_.direct_kill || eviction.grace_period > core::Duration::zero()) return;
  const auto kill = killer_.kill_now(killed_here);
  os::crash_point("signalled");
  eviction.too_many = kill.too_many;
  if (kill.first || kill.too_many) eviction.struck = now();
  report_error(eviction, kill);
  // A pod with a process that could not be signalled, or without any, is left to the runtime.
  if (kill.first && !kill.error && !kill.too_many) report_killed(eviction, kill.method, *kill.first);
}

/// As long as the eviction is under way.
struct Evictor::HeldSubject final : HeldEnd::Subject {
  HeldSubject(const Evictor& evictor, const Eviction& eviction, Shortage shortage, bool runs_hooks)
      : Subject{eviction.pod, std::move(shortage), eviction.report, runs_hooks}, evictor{evictor}, eviction{eviction} {}
  [[nodiscard]] bool has_ended() const override { return evictor.containers_are_empty(eviction, false); }
  [[nodiscard]] bool is_given_up() const override { return eviction.containers->is_given_up(); }

  const Evictor& evictor;
  const Eviction& eviction;
};

/// The pod is let go once all of it is killed, be it by the runtime.
asio::awaitable<void> Evictor::hold_and_run(std::shared_ptr<Eviction> eviction, Shortage shortage, bool runs_hooks) {
  auto* const held = eviction.get();
  static_cast<void>(targets(*held));  // finds the sandbox's cgroup
  const auto subject = std::make_shared<HeldSubject>(*this, *held, std::move(shortage), runs_hooks);
  const auto outcome = co_await held_end_.run(subject);
  Kill kill;
  const bool kills = options_.direct_kill && !held->containers->is_given_up();
  if (kills) kill = co_await kill_directly(*held);
  if (kill.first || kill.too_many) held->struck = now();
  // What is braked could grow until the runtime kills it; what is frozen could not die.
  const bool is_dead = outcome.ended || (kill.first && !kill.error);
  if (outcome.brake && !is_dead && !held->containers->is_given_up())
    held->let_go = [this, subject, outcome] { held_end_.finish(*subject, outcome); };
  else
    held_end_.finish(*subject, outcome);
  if (kill.first && !kill.error)
    report_killed(*held, kill.method, *kill.first);
  else if (outcome.ended && !kill.error)
    report_killed(*held, "StopContainer", now());
  co_await run(std::move(eviction));
}

/// Whether another eviction of the pod is stopping its containers: it has run their hooks, and leaves the rest to this
/// one.
bool Evictor::takes_over(const std::shared_ptr<Eviction>& eviction) {
  std::erase_if(under_way_, [](const auto& entry) { return entry.second.expired(); });
  auto& latest = under_way_[eviction->pod->pod->uid];
  const auto earlier = std::exchange(latest, eviction).lock();
  if (!earlier) return false;
  earlier->afterwards = eviction->afterwards;
  if (earlier->stopped) return false;
  earlier->containers->give_up();
  return true;
}

asio::awaitable<void> Evictor::run(std::shared_ptr<Eviction> eviction) {
  if (eviction->gone) {
    co_await wait_for_cleanup(*eviction);
    co_return;
  }
  std::vector<asio::awaitable<void>> parts;
  if (eviction->killed || eviction->too_many) parts.push_back(keep_killing(*eviction));
  parts.push_back(stop(*eviction));
  if (!eviction->released) parts.push_back(watch_memory(*eviction));
  co_await async::wait_all(std::move(parts));
  if (eviction->containers->is_given_up()) co_return;  // the rest is for the one that took over
  co_await wait_for_cleanup(*eviction);
  co_await tear_down(*eviction);
}

asio::awaitable<void> Evictor::stop(Eviction& eviction) {
  if (eviction.killed) co_await async::sleep(options_.head_start);
  const auto let_go = [&eviction] {
    if (auto held = std::exchange(eviction.let_go, nullptr)) held();
  };
  co_await stop_containers(eviction);
  if (eviction.killed || eviction.containers->is_given_up()) let_go();
  if (!eviction.containers->is_given_up()) {
    co_await stop_sandboxes(eviction);
    let_go();
    // What is in the sandbox's cgroup now is not the runtime's any more.
    eviction.sandbox_too = true;
    if (eviction.afterwards == Afterwards::remove_all) co_await remove_sandboxes(eviction);
  }
  eviction.stopped = true;
}

asio::awaitable<void> Evictor::stop_containers(Eviction& eviction) {
  const bool has_time = eviction.grace_period > core::Duration::zero();
  bool told = true;
  if (has_time && eviction.pod->containers.empty()) told = co_await find_containers(eviction);
  const auto outcome = co_await eviction.containers->run(eviction.report);
  if (eviction.containers->is_given_up()) co_return;
  // Until a kubelet is told, it starts a container again that has ended before the others.
  const bool runs_again = has_time && outcome.any && eviction.sandbox && !look_at_containers(eviction).value_or(true);
  if (told && !outcome.failed && !runs_again) {
    // Where no container is known nobody was told to stop one.
    if (outcome.any || containers_are_empty(eviction, false)) report_killed(eviction, "StopContainer", now());
    co_return;
  }
  const auto kill = co_await kill_directly(eviction);
  // Where no process could be signalled nothing is reported before the end of the cleanup: the pod may run.
  if (!kill.error && (kill.first || containers_are_empty(eviction, false))) report_killed(eviction, kill.method, now());
}

/// Of a pod that the runtime had not listed with them when it was decided upon: the end of its sandbox would take the
/// time from them that the pod is given. Looking takes its part of that. False: the time is over, and the runtime has
/// not told them.
asio::awaitable<bool> Evictor::find_containers(Eviction& eviction) {
  const auto begin = now();
  const auto end = begin + core::stop_time(eviction.grace_period);
  for (;;) {
    const auto until = now() + std::min(eviction.grace_period, options_.stop_timeout);
    const auto found = co_await find_sandboxes(eviction, std::min(end, until));
    if (found) {
      const auto listed = co_await parts_.runtime.list_containers();
      if (listed && !eviction.containers->is_given_up()) {
        eviction.pod = with_containers(*eviction.pod, eviction.sandbox_ids, *listed);
        make_stop(eviction, std::max<core::Duration>(eviction.grace_period - (now() - begin), 1ms));
        co_return true;
      }
    }
    // One that has ended meanwhile needs no time.
    if (eviction.containers->is_given_up() || containers_are_empty(eviction, false)) co_return true;
    if (now() + retry_pause >= end) co_return false;
    co_await async::sleep(retry_pause);
  }
}

/// The runtime has `stop_timeout` for it, which began with the direct kill where there was one, however often it
/// refuses or is not there. Then all that is left in the pod's cgroup is killed.
asio::awaitable<void> Evictor::stop_sandboxes(Eviction& eviction) {
  const auto until = eviction.struck.value_or(now()) + options_.stop_timeout;
  const bool late = now() >= until;  // StopContainer took it all
  if (late) co_await kill_all(eviction);
  const auto give_up = late ? now() + options_.stop_timeout : until;
  std::optional<Progress> failure;
  if (const auto found = co_await find_sandboxes(eviction, give_up); !found)
    failure = CallFailed{"ListPodSandbox", found.error()};
  for (const auto& id : eviction.sandbox_ids)
    if (const auto stopped = co_await stop_sandbox(id, give_up); !stopped)
      failure = without_answer("StopPodSandbox", stopped.error());
  if (failure) eviction.report(*failure);
  eviction.sandbox_left = failure.has_value();
  if (failure || eviction.sandbox_ids.empty())
    co_await kill_all(eviction);
  else if (containers_are_empty(eviction, false))
    report_killed(eviction, "StopPodSandbox", now());
}

/// A pod that the runtime had not listed yet when it went has its sandbox listed soon, or none at all.
asio::awaitable<Result<void>> Evictor::find_sandboxes(Eviction& eviction, core::Instant until) {
  const auto& pod = *eviction.pod;
  eviction.sandbox_ids = sandboxes_of(pod, {});
  if (!eviction.sandbox_ids.empty()) co_return Result<void>{};
  for (;;) {
    const auto answer = co_await look_.since(now());
    if (answer) eviction.sandbox_ids = sandboxes_of(pod, **answer);
    if (!eviction.sandbox_ids.empty()) co_return Result<void>{};
    if (now() + retry_pause >= until || counts_as_empty(parts_.cgroups.is_empty_or_gone(pod.pod->uid))) {
      if (!answer) co_return std::unexpected(answer.error());
      co_return Result<void>{};
    }
    co_await async::sleep(retry_pause);
  }
}

/// A runtime that has refused has answered, though it may have no time to refuse the last call as well.
asio::awaitable<cri::Reply<void>> Evictor::stop_sandbox(std::string id, core::Instant until) {
  std::optional<cri::CallError> told;
  for (;;) {
    const auto left = std::max<core::Duration>(until - now(), 1ms);
    const auto stopped = co_await parts_.runtime.stop_pod_sandbox(id, milliseconds(left));
    if (stopped || stopped.error().failure == cri::Failure::NotFound) co_return cri::Reply<void>{};
    const bool again = may_be_repeated(stopped.error().failure);
    if (again || !told) told = stopped.error();
    if (!again || now() + retry_pause >= until) co_return std::unexpected(*told);
    co_await async::sleep(retry_pause);
  }
}

/// Once.
void Evictor::report_killed(Eviction& eviction, std::string_view method, core::Instant time) {
  if (std::exchange(eviction.killed, true)) return;
  eviction.report(ContainersKilled{.containers = names_of_running(*eviction.pod),
                                   .method = std::string(method),
                                   .time = time,
                                   .held = eviction.held_before});
}

/// Each once.
void Evictor::report_error(Eviction& eviction, const Kill& kill) {
  if (kill.error && std::exchange(eviction.kill_error, kill.error->message) != kill.error->message)
    eviction.report(CallFailed{"kill", *kill.error});
}

/// The pod's own cgroup, with everything below it but the sandbox's. A pod that shares its parent with others has only
/// its containers' cgroups.
std::vector<Target> Evictor::targets(Eviction& eviction) const {
  const auto& pod = *eviction.pod;
  eviction.sandbox = eviction.sandbox_too ? std::nullopt : sandbox_cgroup(parts_.hierarchy, pod, parts_.ready);
  std::vector<Target> targets;
  for (const auto& cgroup : pods::own_cgroups(pod)) targets.push_back({.cgroup = cgroup, .first = cgroup});
  if (pod.cgroup.empty()) return targets;
  if (eviction.sandbox) targets.front().left_out = eviction.sandbox->name;
  targets.front().first = parts_.cgroups.largest_container(pod.pod->uid);
  return targets;
}

os::FileResult<bool> Evictor::look_at_containers(const Eviction& eviction) const {
  const auto& pod = *eviction.pod;
  return eviction.sandbox ? node::is_empty_or_gone(parts_.hierarchy, pod.cgroup, eviction.sandbox->name)
                          : parts_.cgroups.is_empty_or_gone(pod.pod->uid);
}

bool Evictor::containers_are_empty(const Eviction& eviction, bool without_cgroup) const {
  return counts_as_empty(look_at_containers(eviction), without_cgroup);
}

asio::awaitable<Kill> Evictor::kill_directly(Eviction& eviction) {
  auto killed_here = targets(eviction);
  Kill kill{.too_many = eviction.too_many};
  if (!eviction.too_many) kill = killer_.kill_now(killed_here);
  eviction.too_many = kill.too_many;
  if (kill.too_many) kill = co_await killer_.kill_beside(std::move(killed_here));
  report_error(eviction, kill);
  co_return kill;
}

asio::awaitable<void> Evictor::kill_all(Eviction& eviction) {
  eviction.sandbox_too = true;
  const auto kill = co_await kill_directly(eviction);
  if (kill.first && !kill.error) report_killed(eviction, kill.method, *kill.first);
}

/// Those that were too many for the first turn; then what was forked, or put into the cgroup by the runtime, while the
/// others were killed. Those that are slow to die are signalled again with them, so at growing intervals.
asio::awaitable<void> Evictor::keep_killing(Eviction& eviction) {
  core::Duration pause = 50ms;
  const auto give_up = now() + options_.cleanup_timeout;
  const auto uid = eviction.pod->pod->uid;
  while (now() < give_up) {
    if (!eviction.killed) {
      const auto kill = co_await kill_directly(eviction);
      if (kill.first && !kill.error) report_killed(eviction, kill.method, *kill.first);
    }
    const bool empty = co_await emptied(reactor_, parts_.cgroups, uid, std::min(give_up, now() + pause));
    if (empty) co_return;
    if (eviction.killed) static_cast<void>(co_await kill_directly(eviction));
    pause = std::min<core::Duration>(pause * 2, 1s);
  }
}

}  // namespace evictd::evict
