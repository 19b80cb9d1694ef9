#include "evict/evictor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "async/sleep.hpp"
#include "async/wait_all.hpp"
#include "cri/reply.hpp"
#include "evict/emptied.hpp"
#include "evict/evictor_eviction.hpp"
#include "evict/paced_look.hpp"
#include "os/now.hpp"

// What an eviction waits for once its pod is being stopped: its memory, then its end.

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::evict {
namespace {

using os::now;

}  // namespace

/// Polls the pod's own cgroup: a read costs microseconds, and nothing in the kernel tells when memory comes back. What
/// the sandbox holds is not waited for.
asio::awaitable<void> Evictor::watch_memory(Eviction& eviction) {
  constexpr std::int64_t first_step = 32 << 20;
  const auto& uid = eviction.pod->pod->uid;
  const auto before = eviction.held_before;
  if (before == 0) co_return;
  MemoryReleased released;
  core::Instant next_look{};
  const auto containers_ended = [&] {
    const auto look = now();
    if (look < next_look) return false;
    const bool empty = containers_are_empty(eviction, true);
    next_look = earliest_next_look(look, now());
    return empty;
  };
  const auto begin = now();  // an eviction that was begun earlier has the same time once more
  while (now() - begin < eviction.grace_period + options_.cleanup_timeout) {
    const auto since = now() - begin;
    co_await async::sleep(since < 300ms ? 1ms : since < 2s ? 2ms : 20ms);
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
    while (!eviction.killed && !eviction.stopped) co_await async::sleep(1ms);
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
    co_await async::sleep(20ms);
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
    co_await async::sleep(pause);
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

/// What ends with a sandbox's process is not all of it: its network and its mounts are the runtime's to undo. Nobody
/// waits for that, since the node has back what it was short of; a kubelet asks for it, too, once it looks at the pod.
/// Where the cleanup was over before the pod was gone, nobody has seen to its cgroup yet, nor will anybody later.
asio::awaitable<void> Evictor::tear_down(const Eviction& eviction) {
  if (eviction.sandbox_left)
    for (const auto& id : eviction.sandbox_ids)
      static_cast<void>(co_await stop_sandbox(id, now() + options_.cleanup_timeout));
  if (eviction.gone || !eviction.without_processes) co_return;
  static_cast<void>(co_await cgroup_end_.awaited(eviction.pod, now() + options_.cleanup_timeout));
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

}  // namespace evictd::evict
