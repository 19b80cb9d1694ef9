#include "evict/evictor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "evict/emptied.hpp"
#include "evict/join.hpp"
#include "evict/kill.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::evict {
namespace {

core::Instant now() { return std::chrono::steady_clock::now(); }

std::chrono::milliseconds milliseconds(core::Duration duration) {
  return std::chrono::ceil<std::chrono::milliseconds>(duration);
}

}  // namespace

struct Evictor::Eviction {
  pods::RuntimePodPtr pod;
  core::Duration grace_period;
  Afterwards afterwards;
  Report report;
  core::Instant begin = now();
  bool runtime_failed = false;
  bool killed = false;
};

Evictor::Evictor(asio::any_io_executor reactor, cri::Client& runtime, node::PodCgroups& cgroups, EvictorOptions options)
    : reactor_{std::move(reactor)}, runtime_{runtime}, cgroups_{cgroups}, options_{options} {}

asio::awaitable<void> Evictor::run(pods::RuntimePodPtr pod, core::Duration grace_period, Afterwards afterwards,
                                   Report report) {
  Eviction eviction{
      .pod = std::move(pod), .grace_period = grace_period, .afterwards = afterwards, .report = std::move(report)};
  std::vector<asio::awaitable<void>> parts;
  parts.push_back(stop(eviction));
  parts.push_back(watch_memory(eviction));
  co_await join(std::move(parts));
  co_await wait_for_cleanup(eviction);
}

asio::awaitable<void> Evictor::stop(Eviction& eviction) {
  std::vector<asio::awaitable<void>> stops;
  ContainersKilled killed;
  killed.method = "StopContainer";
  for (const auto& container : eviction.pod->containers) {
    if (container.state == pods::ContainerState::Exited) continue;
    killed.containers.push_back(container.name);
    stops.push_back(stop_container(eviction, container.id));
  }
  co_await join(std::move(stops));
  if (eviction.runtime_failed) {
    kill_directly(eviction);
    killed.method = "SIGKILL";
  }
  killed.time = now();
  eviction.report(killed);
  eviction.killed = true;

  const auto stopped =
      co_await runtime_.stop_pod_sandbox(eviction.pod->sandbox_id, milliseconds(options_.stop_timeout));
  if (!stopped && stopped.error().failure != cri::Failure::NotFound) {
    eviction.report(CallFailed{"StopPodSandbox", stopped.error().error});
    kill_directly(eviction);
  }
  if (eviction.afterwards == Afterwards::keep) co_return;
  const auto removed = co_await runtime_.remove_pod_sandbox(eviction.pod->sandbox_id);
  if (!removed && removed.error().failure != cri::Failure::NotFound)
    eviction.report(CallFailed{"RemovePodSandbox", removed.error().error});
}

asio::awaitable<void> Evictor::stop_container(Eviction& eviction, std::string id) {
  const auto grace = std::chrono::ceil<std::chrono::seconds>(eviction.grace_period);
  const auto stopped = co_await runtime_.stop_container(std::move(id), grace, milliseconds(options_.stop_timeout));
  if (stopped || stopped.error().failure == cri::Failure::NotFound) co_return;
  eviction.runtime_failed = true;
  eviction.report(CallFailed{"StopContainer", stopped.error().error});
}

void Evictor::kill_directly(Eviction& eviction) {
  if (const auto killed = kill_pod(cgroups_, eviction.pod->pod->uid); !killed)
    eviction.report(CallFailed{"kill", killed.error()});
}

/// Polls the pod's own cgroup: a read costs microseconds, and nothing in the kernel tells when memory comes back.
asio::awaitable<void> Evictor::watch_memory(Eviction& eviction) {
  constexpr std::int64_t first_step = 32 << 20;
  const auto& uid = eviction.pod->pod->uid;
  const auto before = cgroups_.usage(uid);
  if (!before || *before == 0) co_return;
  MemoryReleased released;
  while (now() - eviction.begin < eviction.grace_period + options_.cleanup_timeout) {
    const bool quick = now() - eviction.begin < 2s;
    co_await sleep(quick ? 2ms : 20ms);
    const auto usage = cgroups_.usage(uid).value_or(0);
    const auto back = *before - usage;
    if (!released.first && back >= std::min(first_step, *before / 2)) released.first = now();
    if (usage > *before / 20 && !cgroups_.is_empty_or_gone(uid).value_or(true)) continue;
    released.bytes = back;
    released.time = now();
    // The memory of a killed process may be back before the runtime has answered that it was killed.
    while (!eviction.killed) co_await sleep(1ms);
    eviction.report(released);
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
    const bool empty = co_await emptied(reactor_, cgroups_, eviction.pod->pod->uid, give_up);
    ended.remaining = "processes in the pod's cgroup";
    if (empty) ended.remaining = co_await what_the_runtime_has(*eviction.pod);
    ended.timed_out = !ended.remaining.empty() && now() >= give_up;
    if (ended.remaining.empty() || ended.timed_out) break;
    co_await sleep(pause);
    pause = std::min(pause * 2, 250ms);
  }
  ended.time = now();
  ended.duration = ended.time - eviction.begin;
  eviction.report(ended);
}

/// Of a pod without processes; empty when it is gone.
asio::awaitable<std::string> Evictor::what_the_runtime_has(const pods::RuntimePod& pod) {
  const auto containers = co_await runtime_.list_containers();
  if (!containers) co_return containers.error().error.message;
  for (const auto& container : containers->containers())
    if (container.pod_sandbox_id() == pod.sandbox_id && container.state() == cri::v1::CONTAINER_RUNNING)
      co_return fmt::format("container {} still running", container.metadata().name());
  const auto sandboxes = co_await runtime_.list_pod_sandboxes();
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
