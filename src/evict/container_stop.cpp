#include "evict/container_stop.hpp"

#include <api.pb.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "async/run_until_either.hpp"
#include "async/sleep.hpp"
#include "async/wait_all.hpp"
#include "core/grace_period.hpp"
#include "core/printable.hpp"
#include "evict/emptied.hpp"
#include "evict/paced_look.hpp"
#include "evict/pre_stop.hpp"
#include "node/cgroup_processes.hpp"
#include "os/log.hpp"
#include "os/now.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::evict {

Progress without_answer(std::string call, cri::CallError error) {
  if (error.failure == cri::Failure::DeadlineExceeded) return CallDelayed{std::move(call), std::move(error.error)};
  return CallFailed{std::move(call), std::move(error.error)};
}

ContainerStop::ContainerStop(const Parts& parts, pods::RuntimePodPtr pod, Options options)
    : parts_{parts},
      pod_{std::move(pod)},
      options_{options},
      turns_{stop_order(*pod_)},
      ended_(turns_.size()),
      begin_{os::now()},
      end_{begin_ + options_.grace_period},
      changed_{parts_.reactor, end_} {}

asio::awaitable<ContainerStop::Outcome> ContainerStop::run(const Report& report) {
  std::vector<asio::awaitable<void>> stops;
  for (std::size_t place = 0; place < turns_.size(); ++place) stops.push_back(stop(place, report));
  co_await async::wait_all(std::move(stops));
  const Outcome outcome{.any = !turns_.empty(), .failed = failed_};
  co_return outcome;
}

void ContainerStop::give_up() {
  given_up_ = true;
  changed_.cancel();
}

asio::awaitable<void> ContainerStop::stop(std::size_t place, const Report& report) {
  const auto& turn = turns_[place];
  if (options_.grace_period > core::Duration::zero()) {
    if (turn.hook != nullptr && options_.runs_hooks) co_await run_hook(turn);
    co_await wait_for_turn(turn);
  }
  if (!given_up_) co_await stop_container(turn.container->id, report);
  ended_[place] = true;
  changed_.cancel();
}

asio::awaitable<void> ContainerStop::run_hook(const StopTurn& turn) {
  const auto& container = *turn.container;
  Result<void> result;
  const auto hook = [&]() -> asio::awaitable<void> {
    HookPlace place{
        .container_id = container.id, .sandbox_id = pod_->sandbox_id, .host_network = pod_->pod->host_network};
    result = co_await run_pre_stop(parts_.reactor, parts_.runtime, *turn.hook, std::move(place), end_);
  };
  ++hooks_;
  auto work = hook();
  auto limit = hook_is_over(container);
  const bool ended = co_await async::run_until_either(std::move(work), std::move(limit));
  --hooks_;
  if (ended && result) co_return;
  if (ended)
    os::log_warning("{}: the preStop hook of container {} failed: {}", pod_->pod->key(), container.name,
                    core::printable(result.error().message));
  else if (!given_up_ && os::now() >= end_)
    os::log_warning("{}: the preStop hook of container {} has not ended within the grace period of {}",
                    pod_->pod->key(), container.name, core::to_string(options_.grace_period));
}

/// Until the hook has to go. Where the container's processes cannot be seen only the time counts.
asio::awaitable<void> ContainerStop::hook_is_over(const pods::RuntimeContainer& container) const {
  constexpr core::Duration pause = 100ms;
  asio::steady_timer timer{parts_.reactor};
  bool ran = false;
  while (!given_up_) {
    const auto begin = os::now();
    if (begin >= end_) co_return;
    const bool runs = !container.cgroup.empty() &&
                      !counts_as_empty(node::is_empty_or_gone(parts_.hierarchy, container.cgroup), false);
    if (ran && !runs) co_return;
    ran = runs;
    const auto end = os::now();
    timer.expires_at(std::min(end_, std::max(end + pause, earliest_next_look(begin, end))));
    const bool is_time = co_await async::wait(timer);
    if (!is_time) co_return;
  }
}

asio::awaitable<void> ContainerStop::wait_for_turn(const StopTurn& turn) {
  const auto waits = [&] {
    return !given_up_ && os::now() < end_ &&
           !std::ranges::all_of(turn.after, [&](auto place) { return ended_[place]; });
  };
  while (waits()) co_await async::wait(changed_);
}

asio::awaitable<void> ContainerStop::stop_container(std::string id, const Report& report) {
  constexpr auto pause = 250ms;
  const auto most = core::stop_time(options_.grace_period, os::now() - begin_);
  const auto until = os::now() + most;
  for (auto grace = most;; grace = std::max(until - os::now(), core::Duration::zero())) {
    const auto stopped =
        co_await parts_.runtime.stop_container(id, std::chrono::ceil<std::chrono::seconds>(grace),
                                               std::chrono::ceil<std::chrono::milliseconds>(options_.stop_timeout));
    if (given_up_ || stopped || stopped.error().failure == cri::Failure::NotFound) co_return;
    // A runtime that restarts meanwhile takes nothing from the time that the pod was given.
    if (stopped.error().failure != cri::Failure::Unavailable || os::now() + pause >= until) {
      failed_ = true;
      report(without_answer("StopContainer", stopped.error()));
      co_return;
    }
    co_await async::sleep(pause);
  }
}

}  // namespace evictd::evict
