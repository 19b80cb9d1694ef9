#include "evict/evictor.hpp"

#include <api.pb.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <utility>

#include "async/spawn.hpp"
#include "async/wait_all.hpp"
#include "cri/reply.hpp"
#include "evict/container_stop.hpp"
#include "evict/emptied.hpp"
#include "evict/sandbox_cgroup.hpp"
#include "node/cgroup_processes.hpp"
#include "os/crash_point.hpp"
#include "os/now.hpp"

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

constexpr core::Duration retry_pause = 100ms;  // between calls that the runtime refuses, or does not take

/// A listed pod's is known; of another those that the runtime has by its uid.
std::vector<std::string> sandboxes_of(const pods::RuntimePod& pod, const RuntimeView& view) {
  if (!pod.sandbox_id.empty()) return {pod.sandbox_id};
  const auto known = view.by_pod_uid.find(pod.pod->uid);
  return known != view.by_pod_uid.end() ? known->second : std::vector<std::string>{};
}

Progress without_answer(std::string call, cri::CallError error) {
  if (error.failure == cri::Failure::DeadlineExceeded) return CallDelayed{std::move(call), std::move(error.error)};
  return CallFailed{std::move(call), std::move(error.error)};
}

/// A call that the runtime takes and does not answer is not made again: it may still be carried out.
bool may_be_repeated(cri::Failure failure) {
  return failure == cri::Failure::Unavailable || failure == cri::Failure::Refused;
}

}  // namespace

struct Evictor::Eviction {
  pods::RuntimePodPtr pod;
  core::Duration grace_period;
  Afterwards afterwards;
  Report report;
  core::Instant begin = now();
  std::int64_t held_before = 0;               // bytes of memory
  std::optional<SandboxCgroup> sandbox{};     // left alone by direct kills
  bool sandbox_too = false;                   // it is not any more
  std::vector<std::string> sandbox_ids{};     // as the runtime knows them
  bool too_many = false;                      // processes, to be killed in a turn of the reactor
  std::optional<core::Instant> struck{};      // when its containers were killed without the runtime, at its beginning
  std::optional<ContainerStop> containers{};  // unless the pod is gone
  bool sandbox_left = false;                  // killed without StopPodSandbox having been carried out
  bool stopped = false;                       // all that can be done to it was done
  bool killed = false;                        // reported
  bool released = false;                      // its memory
  bool without_processes = false;             // as far as can be told
  bool gone = false;                          // reported: at most its cgroup and its volumes are left
  std::string kill_error{};
  std::string removal_error{};
};

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
      cgroup_end_{reactor_,
                  {.hierarchy = parts_.hierarchy, .pods_cgroup = parts_.pods_cgroup, .kubelet = parts_.kubelet}},
      volumes_end_{reactor_,
                   {.hierarchy = parts_.hierarchy,
                    .kubelet_root = parts_.kubelet_root,
                    .mode = options_.remove_volumes,
                    .kubelet = parts_.kubelet}} {}

void Evictor::begin(pods::RuntimePodPtr pod, core::Duration grace_period, Afterwards afterwards, Report report,
                    const std::optional<Reached>& reached) {
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
  const ContainerStop::Parts stop_parts{reactor_, parts_.runtime, parts_.hierarchy};
  eviction->containers.emplace(
      stop_parts, eviction->pod,
      ContainerStop::Options{
          .grace_period = grace_period, .stop_timeout = options_.stop_timeout, .runs_hooks = is_first});
  if (eviction->held_before == 0) eviction->held_before = parts_.cgroups.usage(eviction->pod->pod->uid).value_or(0);
  const auto killed_here = targets(*eviction);  // also finds the sandbox's cgroup, for the memory that is watched
  if (options_.direct_kill && grace_period == core::Duration::zero()) {
    const auto kill = killer_.kill_now(killed_here);
    os::crash_point("signalled");
    eviction->too_many = kill.too_many;
    if (kill.first || kill.too_many) eviction->struck = now();
    report_error(*eviction, kill);
    // A pod with a process that could not be signalled, or without any, is left to the runtime.
    if (kill.first && !kill.error && !kill.too_many) report_killed(*eviction, kill.method, *kill.first);
  }
  async::spawn(reactor_, run(std::move(eviction)), "an eviction");
}

/// Whether another eviction of the pod is stopping its containers: it has run their hooks, and leaves the rest to this
/// one.
bool Evictor::takes_over(const std::shared_ptr<Eviction>& eviction) {
  std::erase_if(under_way_, [](const auto& entry) { return entry.second.expired(); });
  auto& latest = under_way_[eviction->pod->pod->uid];
  const auto earlier = std::exchange(latest, eviction).lock();
  if (!earlier || earlier->stopped) return false;
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
  co_await wait_for_cleanup(*eviction);
  if (eviction->sandbox_left) co_await tear_down(*eviction);
}

asio::awaitable<void> Evictor::stop(Eviction& eviction) {
  co_await stop_containers(eviction);
  if (!eviction.containers->is_given_up()) {
    co_await stop_sandboxes(eviction);
    // What is in the sandbox's cgroup now is not the runtime's any more.
    eviction.sandbox_too = true;
    if (eviction.afterwards == Afterwards::remove_all) co_await remove_sandboxes(eviction);
  }
  eviction.stopped = true;
}

asio::awaitable<void> Evictor::stop_containers(Eviction& eviction) {
  const auto outcome = co_await eviction.containers->run(eviction.report);
  if (eviction.containers->is_given_up()) co_return;
  if (!outcome.failed) {
    if (outcome.any || !eviction.too_many) report_killed(eviction, "StopContainer", now());
    co_return;
  }
  const auto kill = co_await kill_directly(eviction);
  // Where no process could be signalled nothing is reported before the end of the cleanup: the pod may run.
  if (!kill.error && (kill.first || containers_are_empty(eviction, false))) report_killed(eviction, kill.method, now());
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
  if (failure || eviction.sandbox_ids.empty()) co_await kill_all(eviction);
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
    co_await sleep(retry_pause);
  }
}

asio::awaitable<cri::Reply<void>> Evictor::stop_sandbox(std::string id, core::Instant until) {
  for (;;) {
    const auto left = std::max<core::Duration>(until - now(), 1ms);
    const auto stopped = co_await parts_.runtime.stop_pod_sandbox(id, milliseconds(left));
    if (stopped || stopped.error().failure == cri::Failure::NotFound) co_return cri::Reply<void>{};
    if (!may_be_repeated(stopped.error().failure) || now() + retry_pause >= until)
      co_return std::unexpected(stopped.error());
    co_await sleep(retry_pause);
  }
}

/// What ends with a sandbox's process is not all of it: its network and its mounts are the runtime's to undo. Nobody
/// waits for that, since the node has back what it was short of; a kubelet asks for it, too, once it looks at the pod.
asio::awaitable<void> Evictor::tear_down(const Eviction& eviction) {
  for (const auto& id : eviction.sandbox_ids)
    static_cast<void>(co_await stop_sandbox(id, now() + options_.cleanup_timeout));
}

/// A removal is refused while a container runs; wait_for_cleanup tries it again.
asio::awaitable<void> Evictor::remove_sandboxes(Eviction& eviction) {
  eviction.removal_error.clear();
  for (const auto& id : eviction.sandbox_ids) {
    const auto removed = co_await parts_.runtime.remove_pod_sandbox(id);
    if (!removed && removed.error().failure != cri::Failure::NotFound)
      eviction.removal_error = removed.error().error.message;
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
  std::vector<Target> targets;
  eviction.sandbox = eviction.sandbox_too ? std::nullopt : sandbox_cgroup(parts_.hierarchy, pod, parts_.ready);
  if (!pod.cgroup.empty()) {
    targets.push_back({.cgroup = pod.cgroup,
                       .left_out = eviction.sandbox ? eviction.sandbox->name : std::string{},
                       .first = parts_.cgroups.largest_container(pod.pod->uid)});
    return targets;
  }
  for (const auto& container : pod.containers)
    if (!container.cgroup.empty()) targets.push_back({.cgroup = container.cgroup, .first = container.cgroup});
  return targets;
}

bool Evictor::containers_are_empty(const Eviction& eviction, bool without_cgroup) const {
  const auto& pod = *eviction.pod;
  return counts_as_empty(eviction.sandbox ? node::is_empty_or_gone(parts_.hierarchy, pod.cgroup, eviction.sandbox->name)
                                          : parts_.cgroups.is_empty_or_gone(pod.pod->uid),
                         without_cgroup);
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
  static_cast<void>(co_await kill_directly(eviction));
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

/// Polls the pod's own cgroup: a read costs microseconds, and nothing in the kernel tells when memory comes back. What
/// the sandbox holds is not waited for. A look at the processes may take long where there are very many of them.
asio::awaitable<void> Evictor::watch_memory(Eviction& eviction) {
  constexpr std::int64_t first_step = 32 << 20;
  const auto& uid = eviction.pod->pod->uid;
  const auto before = eviction.held_before;
  if (before == 0) co_return;
  constexpr int share = 20;  // of the time goes into looks at the processes, at most
  MemoryReleased released;
  core::Instant next_look{};
  const auto containers_ended = [&] {
    const auto look = now();
    if (look < next_look) return false;
    const bool empty = containers_are_empty(eviction, true);
    const auto end = now();
    next_look = end + (end - look) * share;
    return empty;
  };
  const auto begin = now();  // an eviction that was begun earlier has the same time once more
  while (now() - begin < eviction.grace_period + options_.cleanup_timeout) {
    const auto since = now() - begin;
    co_await sleep(since < 300ms ? 1ms : since < 2s ? 2ms : 20ms);
    const auto usage = parts_.cgroups.usage(uid);
    if (!usage && !usage.error().is_gone()) continue;  // what cannot be read may still be held
    const auto held = usage.value_or(0);
    const auto back = before - held;
    if (!released.first && back >= std::min(first_step, before / 2)) released.first = now();
    const auto of_sandbox = eviction.sandbox ? eviction.sandbox->held : 0;
    if (held > before / 20 + of_sandbox && !containers_ended()) continue;
    released.bytes = back;
    released.time = now();
    // The memory of a killed process may be back before the runtime has answered that it was killed.
    while (!eviction.killed && !eviction.stopped) co_await sleep(1ms);
    if (eviction.killed) eviction.report(released);
    co_return;
  }
}

/// What waits for memory does not wait for a disk. Where a disk is short, what the pod held is not back before its
/// volumes are.
asio::awaitable<void> Evictor::wait_for_cleanup(Eviction& eviction) {
  const auto give_up = now() + options_.cleanup_timeout;
  const bool frees_disk = eviction.afterwards == Afterwards::remove_all;
  std::vector<asio::awaitable<std::string>> waits;
  waits.push_back(frees_disk ? wait_until_gone(eviction, give_up) : see_it_gone(eviction, give_up));
  waits.push_back(wait_for_volumes(eviction, give_up));
  const auto left = co_await async::wait_all(std::move(waits));
  CleanupEnded ended;
  ended.remaining = left[0].empty() ? left[1] : left[0];
  if (frees_disk && ended.remaining.empty()) ended.remaining = co_await say_it_is_gone(eviction, give_up);
  ended.timed_out = !ended.remaining.empty();
  ended.volumes_left = !left[1].empty();
  ended.time = now();
  ended.duration = ended.time - eviction.begin;
  eviction.report(ended);
}

asio::awaitable<std::string> Evictor::see_it_gone(Eviction& eviction, core::Instant give_up) {
  auto left = co_await wait_until_gone(eviction, give_up);
  if (left.empty()) left = co_await say_it_is_gone(eviction, give_up);
  co_return left;
}

/// And waits for its cgroup.
asio::awaitable<std::string> Evictor::say_it_is_gone(Eviction& eviction, core::Instant give_up) {
  if (!std::exchange(eviction.gone, true)) {
    report_killed(eviction, "StopPodSandbox", now());
    eviction.report(PodGone{now()});
  }
  auto left = co_await cgroup_end_.awaited(eviction.pod, give_up);
  co_return left;
}

/// They go as soon as no process is left: a runtime may lack their very space to be through with the pod.
asio::awaitable<std::string> Evictor::wait_for_volumes(Eviction& eviction, core::Instant give_up) {
  if (eviction.afterwards == Afterwards::keep) co_return std::string{};
  while (!eviction.without_processes) {
    if (now() >= give_up) co_return std::string{};
    co_await sleep(20ms);
  }
  auto left = co_await volumes_end_.awaited(eviction.pod, give_up);
  co_return left;
}

/// What is still there when the time is over; empty: the pod is gone. The cgroup first: it answers in microseconds, and
/// while processes live the runtime need not be asked. A pod without a cgroup to itself is gone when the runtime says
/// so.
asio::awaitable<std::string> Evictor::wait_until_gone(Eviction& eviction, core::Instant give_up) {
  auto pause = 5ms;
  eviction.without_processes = eviction.gone;
  if (eviction.gone) co_return std::string{};
  for (;;) {
    const bool empty = co_await emptied(reactor_, parts_.cgroups, eviction.pod->pod->uid, give_up);
    if (empty && !eviction.pod->cgroup.empty()) eviction.without_processes = true;
    std::string remaining = "processes in the pod's cgroup";
    if (empty) remaining = co_await left_in_the_runtime(eviction);
    if (remaining.empty()) eviction.without_processes = true;
    if (remaining.empty() || now() >= give_up) co_return remaining;
    co_await sleep(pause);
    pause = std::min(pause * 2, 250ms);
  }
}

/// Of a pod without processes; empty when it is gone. A sandbox that is still to be removed is stopped and removed once
/// more: it was refused while a container ran, or while the runtime did not answer.
asio::awaitable<std::string> Evictor::left_in_the_runtime(Eviction& eviction) {
  const auto answer = co_await look_.since(now());
  if (!answer) co_return answer.error().message;
  const auto& view = **answer;
  if (eviction.sandbox_ids.empty()) eviction.sandbox_ids = sandboxes_of(*eviction.pod, view);
  std::string left;
  for (const auto& id : eviction.sandbox_ids) {
    if (const auto running = view.running.find(id); running != view.running.end())
      left = fmt::format("container {} still running", running->second);
    else if (view.ready.contains(id))
      left = "the sandbox still ready";
    else if (eviction.afterwards == Afterwards::remove_all && view.sandboxes.contains(id))
      left = fmt::format("the sandbox not removed{}{}", eviction.removal_error.empty() ? "" : ": ",
                         eviction.removal_error);
    else
      continue;
    if (eviction.afterwards != Afterwards::remove_all) break;
    static_cast<void>(co_await stop_sandbox(id, now() + options_.stop_timeout));
    co_await remove_sandboxes(eviction);
    break;
  }
  co_return left;
}

asio::awaitable<void> Evictor::sleep(core::Duration duration) {
  asio::steady_timer timer{reactor_, duration};
  co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
}

}  // namespace evictd::evict
