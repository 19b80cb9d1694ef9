#include "evict/evictor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <utility>

#include "cri/reply.hpp"
#include "evict/emptied.hpp"
#include "evict/join.hpp"
#include "host/crash_point.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::evict {
namespace {

core::Instant now() { return std::chrono::steady_clock::now(); }

std::chrono::milliseconds milliseconds(core::Duration duration) {
  return std::chrono::ceil<std::chrono::milliseconds>(duration);
}

std::vector<std::string> names_of_running(const pods::RuntimePod& pod) {
  std::vector<std::string> names;
  for (const auto& container : pod.containers)
    if (container.state != pods::ContainerState::Exited) names.push_back(container.name);
  return names;
}

/// The pod's own, with everything below it. A pod that shares its parent with others has only its containers' cgroups.
std::vector<std::string> cgroups_of(const pods::RuntimePod& pod) {
  if (!pod.cgroup.empty()) return {pod.cgroup};
  std::vector<std::string> cgroups;
  for (const auto& container : pod.containers)
    if (!container.cgroup.empty()) cgroups.push_back(container.cgroup);
  return cgroups;
}

}  // namespace

struct Evictor::Eviction {
  pods::RuntimePodPtr pod;
  core::Duration grace_period;
  Afterwards afterwards;
  Report report;
  core::Instant begin = now();
  std::int64_t held_before = 0;  // bytes of memory
  bool runtime_failed = false;
  bool stopped = false;   // all that can be done to it was done
  bool killed = false;    // said to be
  bool released = false;  // its memory
  std::string kill_error{};
};

Evictor::Evictor(asio::any_io_executor reactor, Parts parts, EvictorOptions options)
    : reactor_{std::move(reactor)}, parts_{std::move(parts)}, options_{options} {}

void Evictor::begin(pods::RuntimePodPtr pod, core::Duration grace_period, Afterwards afterwards, Report report,
                    const std::optional<Earlier>& earlier) {
  auto eviction = std::make_shared<Eviction>(Eviction{
      .pod = std::move(pod), .grace_period = grace_period, .afterwards = afterwards, .report = std::move(report)});
  eviction->held_before = parts_.cgroups.usage(eviction->pod->pod->uid).value_or(0);
  if (earlier) {
    eviction->begin = earlier->begun;
    eviction->killed = earlier->killed;
    eviction->released = earlier->released;
    if (earlier->killed) eviction->held_before = earlier->held;
  }
  if (options_.kill == config::KillMode::Fast && grace_period == core::Duration::zero()) {
    const auto kill = kill_directly(*eviction);
    host::crash_point("signalled");
    // Somebody nobody could signal, or nobody at all, is left to the runtime.
    if (kill && kill->first) say_killed(*eviction, kill->method, *kill->first);
  }
  asio::co_spawn(reactor_, run(std::move(eviction)), asio::detached);
}

asio::awaitable<void> Evictor::run(std::shared_ptr<Eviction> eviction) {
  std::vector<asio::awaitable<void>> parts;
  parts.push_back(stop(*eviction));
  if (!eviction->released) parts.push_back(watch_memory(*eviction));
  if (eviction->killed) parts.push_back(keep_killing(*eviction));
  co_await join(std::move(parts));
  co_await wait_for_cleanup(*eviction);
}

asio::awaitable<void> Evictor::stop(Eviction& eviction) {
  std::vector<asio::awaitable<void>> stops;
  for (const auto& container : eviction.pod->containers)
    if (container.state != pods::ContainerState::Exited) stops.push_back(stop_container(eviction, container.id));
  co_await join(std::move(stops));
  if (!eviction.runtime_failed) {
    say_killed(eviction, "StopContainer", now());
  } else if (const auto kill = kill_directly(eviction)) {
    // Of whom nobody could be signalled nothing is said before the end of the cleanup: the pod may run.
    if (kill->first || counts_as_empty(parts_.cgroups.is_empty_or_gone(eviction.pod->pod->uid), false))
      say_killed(eviction, kill->method, now());
  }
  for (auto& sandbox : co_await sandboxes_of(eviction)) co_await stop_sandbox(eviction, std::move(sandbox));
  eviction.stopped = true;
}

/// Once.
void Evictor::say_killed(Eviction& eviction, std::string_view method, core::Instant time) {
  if (std::exchange(eviction.killed, true)) return;
  eviction.report(ContainersKilled{.containers = names_of_running(*eviction.pod),
                                   .method = std::string(method),
                                   .time = time,
                                   .held = eviction.held_before});
}

/// A pod that the runtime had not listed yet when it went has its sandbox listed now, or none at all.
asio::awaitable<std::vector<std::string>> Evictor::sandboxes_of(Eviction& eviction) {
  std::vector<std::string> ids;
  if (!eviction.pod->sandbox_id.empty()) {
    ids.push_back(eviction.pod->sandbox_id);
    co_return ids;
  }
  const auto listed = co_await parts_.runtime.list_pod_sandboxes();
  if (!listed) {
    eviction.report(CallFailed{"ListPodSandbox", listed.error().error});
    co_return ids;
  }
  for (const auto& sandbox : listed->items())
    if (sandbox.metadata().uid() == eviction.pod->pod->uid) ids.push_back(sandbox.id());
  co_return ids;
}

asio::awaitable<void> Evictor::stop_sandbox(Eviction& eviction, std::string id) {
  const auto stopped = co_await parts_.runtime.stop_pod_sandbox(id, milliseconds(options_.stop_timeout));
  if (!stopped && stopped.error().failure != cri::Failure::NotFound) {
    eviction.report(CallFailed{"StopPodSandbox", stopped.error().error});
    static_cast<void>(kill_directly(eviction));
  }
  if (eviction.afterwards == Afterwards::keep) co_return;
  const auto removed = co_await parts_.runtime.remove_pod_sandbox(std::move(id));
  if (!removed && removed.error().failure != cri::Failure::NotFound)
    eviction.report(CallFailed{"RemovePodSandbox", removed.error().error});
}

asio::awaitable<void> Evictor::stop_container(Eviction& eviction, std::string id) {
  constexpr auto pause = 250ms;
  const auto until = now() + eviction.grace_period;
  for (auto grace = eviction.grace_period;; grace = std::max(until - now(), core::Duration::zero())) {
    const auto stopped = co_await parts_.runtime.stop_container(id, std::chrono::ceil<std::chrono::seconds>(grace),
                                                                milliseconds(options_.stop_timeout));
    if (stopped || stopped.error().failure == cri::Failure::NotFound) co_return;
    // A runtime that restarts meanwhile takes nothing from the time that the pod was given.
    if (stopped.error().failure != cri::Failure::Unavailable || now() + pause >= until) {
      eviction.runtime_failed = true;
      eviction.report(CallFailed{"StopContainer", stopped.error().error});
      co_return;
    }
    co_await sleep(pause);
  }
}

/// Nothing where it failed, which is reported, once if it fails again.
std::optional<Kill> Evictor::kill_directly(Eviction& eviction) {
  auto kill = kill_cgroups(parts_.hierarchy, parts_.pods_cgroup, cgroups_of(*eviction.pod), parts_.is_protected);
  if (!kill) {
    if (std::exchange(eviction.kill_error, kill.error().message) != kill.error().message)
      eviction.report(CallFailed{"kill", kill.error()});
    return std::nullopt;
  }
  Kill result{.processes = {}, .method = kill->method, .first = kill->first};
  parts_.reaper.reap(std::move(kill->processes));
  return result;
}

/// What was forked, or put into the cgroup by the runtime, while the others were killed. Those that are slow to die are
/// signalled again with them, so ever more seldom.
asio::awaitable<void> Evictor::keep_killing(Eviction& eviction) {
  core::Duration pause = 50ms;
  const auto give_up = now() + options_.cleanup_timeout;
  const auto uid = eviction.pod->pod->uid;
  while (now() < give_up) {
    const bool empty = co_await emptied(reactor_, parts_.cgroups, uid, std::min(give_up, now() + pause));
    if (empty) co_return;
    if (!kill_directly(eviction)) co_return;
    pause = std::min<core::Duration>(pause * 2, 1s);
  }
}

/// Polls the pod's own cgroup: a read costs microseconds, and nothing in the kernel tells when memory comes back.
asio::awaitable<void> Evictor::watch_memory(Eviction& eviction) {
  constexpr std::int64_t first_step = 32 << 20;
  const auto& uid = eviction.pod->pod->uid;
  const auto before = eviction.held_before;
  if (before == 0) co_return;
  MemoryReleased released;
  const auto begin = now();  // an eviction that was begun earlier has the same time once more
  while (now() - begin < eviction.grace_period + options_.cleanup_timeout) {
    const auto since = now() - begin;
    co_await sleep(since < 300ms ? 1ms : since < 2s ? 2ms : 20ms);
    const auto usage = parts_.cgroups.usage(uid);
    if (!usage && !usage.error().is_gone()) continue;  // what cannot be read may still be held
    const auto held = usage.value_or(0);
    const auto back = before - held;
    if (!released.first && back >= std::min(first_step, before / 2)) released.first = now();
    if (held > before / 20 && !counts_as_empty(parts_.cgroups.is_empty_or_gone(uid))) continue;
    released.bytes = back;
    released.time = now();
    // The memory of a killed process may be back before the runtime has answered that it was killed.
    while (!eviction.killed && !eviction.stopped) co_await sleep(1ms);
    if (eviction.killed) eviction.report(released);
    co_return;
  }
}

/// The cgroup first: it answers in microseconds, and while processes live the runtime need not be asked. A pod without
/// a cgroup to itself is gone when the runtime says so.
asio::awaitable<void> Evictor::wait_for_cleanup(Eviction& eviction) {
  const auto give_up = now() + options_.cleanup_timeout;
  auto pause = 5ms;
  CleanupEnded ended;
  for (;;) {
    const bool empty = co_await emptied(reactor_, parts_.cgroups, eviction.pod->pod->uid, give_up);
    ended.remaining = "processes in the pod's cgroup";
    if (empty) ended.remaining = co_await what_the_runtime_has(*eviction.pod);
    ended.timed_out = !ended.remaining.empty() && now() >= give_up;
    if (ended.remaining.empty() || ended.timed_out) break;
    co_await sleep(pause);
    pause = std::min(pause * 2, 250ms);
  }
  if (!ended.timed_out) say_killed(eviction, "StopPodSandbox", now());
  ended.time = now();
  ended.duration = ended.time - eviction.begin;
  eviction.report(ended);
}

/// Of a pod without processes; empty when it is gone.
asio::awaitable<std::string> Evictor::what_the_runtime_has(const pods::RuntimePod& pod) {
  const auto containers = co_await parts_.runtime.list_containers();
  if (!containers) co_return containers.error().error.message;
  for (const auto& container : containers->containers())
    if (container.pod_sandbox_id() == pod.sandbox_id && container.state() == cri::v1::CONTAINER_RUNNING)
      co_return fmt::format("container {} still running", container.metadata().name());
  const auto sandboxes = co_await parts_.runtime.list_pod_sandboxes();
  if (!sandboxes) co_return sandboxes.error().error.message;
  for (const auto& sandbox : sandboxes->items())
    if (sandbox.id() == pod.sandbox_id && sandbox.state() == cri::v1::SANDBOX_READY)
      co_return "the sandbox still ready";
  co_return std::string{};
}

asio::awaitable<void> Evictor::sleep(core::Duration duration) {
  asio::steady_timer timer{reactor_, duration};
  co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
}

}  // namespace evictd::evict
