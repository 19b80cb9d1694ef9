#include "agent/allocation_enforcer.hpp"

#include <api.pb.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <optional>
#include <tuple>
#include <utility>

#include "admission/number_list.hpp"
#include "admission/pod_allocation.hpp"
#include "async/spawn.hpp"
#include "async/turns.hpp"
#include "async/wait_all.hpp"
#include "cri/reply.hpp"
#include "os/log.hpp"
#include "os/now.hpp"
#include "pods/runtime_pod.hpp"

namespace asio = boost::asio;

namespace evictd::agent {
namespace {

/// A container is started some 50 ms after its cgroup has come, on a busy machine later; what takes longer waits for
/// the lists that there are anyway.
constexpr int most_looks_for_start = 5;

/// Looking through a thousand processes for a kubelet takes 10 ms.
constexpr core::Duration lookout_patience = std::chrono::seconds(1);

const admission::ContainerAllocation* given_to(const admission::PodAllocation* pod, const std::string& container) {
  if (pod == nullptr) return nullptr;
  const auto found = pod->find(container);
  return found == pod->end() ? nullptr : &found->second;
}

}  // namespace

AllocationEnforcer::AllocationEnforcer(asio::any_io_executor reactor, Parts parts)
    : reactor_{std::move(reactor)}, parts_{parts} {}

void AllocationEnforcer::start() {
  parts_.tracker.tell(*this);
  async::spawn(reactor_, reconcile_again_and_again(), "reconciling what containers were given");
  look();
}

asio::awaitable<void> AllocationEnforcer::reconcile_again_and_again() {
  while (!stopping_) {
    co_await parts_.clock.sleep(reconcile_period);
    retries_ = true;
    paused_ = false;
    look();
  }
}

void AllocationEnforcer::look() {
  if (stopping_ || paused_) return;
  looks_again_ = true;
  if (!std::exchange(writing_, true)) async::spawn(reactor_, write_until_all_is_written(), "confining containers");
}

/// A turn later: whoever tells of a change may be about to decide on an eviction, which waits for nothing.
asio::awaitable<void> AllocationEnforcer::write_until_all_is_written() {
  co_await asio::post(reactor_, asio::use_awaitable);
  while (looks_again_ && !paused_ && !stopping_) {
    looks_again_ = false;
    await_starts();
    co_await write_what_is_due();
  }
  writing_ = false;
}

/// What is started runs unconfined until it is seen: where nobody tells of starts, it is looked for.
void AllocationEnforcer::await_starts() {
  std::map<std::string, int, std::less<>> looks;
  bool any_is_new = false;
  for (const auto& pod : parts_.pods.runtime_pods()) {
    for (const auto& container : pod->containers) {
      if (container.state != pods::ContainerState::Created) continue;
      const auto known = looks_.find(container.id);
      const int before = known == looks_.end() ? 0 : known->second;
      any_is_new = any_is_new || before < most_looks_for_start;
      looks.emplace(container.id, std::min(before + 1, most_looks_for_start));
    }
  }
  looks_ = std::move(looks);
  if (any_is_new) parts_.tracker.await_start();
}

asio::awaitable<void> AllocationEnforcer::write_what_is_due() {
  const auto due = find_due();
  if (due.empty()) co_return;
  const bool allowed = co_await may_write();
  if (!allowed) co_return;
  // After a change the rest may be due no more, or others before it.
  std::span<const Due> rest{due};
  while (!rest.empty() && !looks_again_ && !paused_ && !stopping_) {
    const auto batch = rest.first(std::min(calls_at_a_time, rest.size()));
    co_await write(batch);
    rest = rest.subspan(batch.size());
  }
}

asio::awaitable<bool> AllocationEnforcer::may_write() {
  if (parts_.kubelet == nullptr) co_return true;
  const auto runs = co_await parts_.kubelet->kubelet_runs(os::now() + lookout_patience);
  if (!runs) {
    paused_ = true;  // perhaps it can be told later
    co_return false;
  }
  if (*runs) {
    os::log_info("a kubelet runs: it confines containers to their CPUs, and evictd does not until it is restarted");
    stopping_ = true;
  }
  co_return !*runs;
}

/// Those with something of their own first, for the others only make room; at the end those that failed, which may fail
/// again.
std::vector<AllocationEnforcer::Due> AllocationEnforcer::find_due() {
  async::Turns::doing("finding what containers are confined to");
  const bool retries = std::exchange(retries_, false);
  const auto& allocations = parts_.admission.allocations();
  const auto shared_cpus = admission::print_number_list(parts_.allocator.shared_cpus(allocations));
  std::vector<Due> due;
  std::map<std::string, Written, std::less<>> running;
  for (const auto& pod : parts_.pods.runtime_pods()) {
    const auto found = allocations.find(pod->pod->uid);
    const auto* given_to_pod = found == allocations.end() ? nullptr : &found->second;
    for (const auto& container : pod->containers) {
      if (container.state != pods::ContainerState::Running) continue;
      const auto* given = given_to(given_to_pod, container.name);
      auto cpuset = cpuset_of(given, shared_cpus);
      bool failed_before = false;
      bool is_due = !cpuset.empty();
      if (auto written = written_.extract(container.id)) {
        failed_before = written.mapped().failed;
        is_due = is_due && (written.mapped().cpuset != cpuset || (failed_before && retries));
        running.insert(std::move(written));
      }
      if (!is_due) continue;
      due.push_back({.container = container.id,
                     .name = fmt::format("{}/{}", pod->pod->key(), container.name),
                     .cpuset = std::move(cpuset),
                     .is_exclusive = given != nullptr,
                     .failed = failed_before});
    }
  }
  written_ = std::move(running);
  std::ranges::stable_sort(due, {}, [](const Due& one) { return std::tuple{one.failed, !one.is_exclusive}; });
  return due;
}

/// A container whose memory lies nowhere in particular may use all of it, as it may from its start. (kubelet 1.36:
/// GetMemoryNUMANodes)
AllocationEnforcer::Cpuset AllocationEnforcer::cpuset_of(const admission::ContainerAllocation* given,
                                                         const std::string& shared_cpus) {
  if (given == nullptr) return {.cpus = shared_cpus, .mems = {}};
  admission::NumaNodes nodes;
  for (const auto& block : given->memory) nodes.insert(block.numa_nodes.begin(), block.numa_nodes.end());
  return {.cpus = given->cpus.empty() ? shared_cpus : admission::print_number_list(given->cpus),
          .mems = admission::print_number_list(nodes)};
}

asio::awaitable<void> AllocationEnforcer::write(std::span<const Due> containers) {
  std::vector<cri::Awaitable<cri::v1::UpdateContainerResourcesResponse>> calls;
  calls.reserve(containers.size());
  for (const auto& due : containers)
    calls.push_back(parts_.runtime.update_cpuset(due.container, due.cpuset.cpus, due.cpuset.mems));
  const auto replies = co_await async::wait_all(std::move(calls));
  std::size_t unanswered = 0;
  for (std::size_t i = 0; i < containers.size(); ++i) {
    using enum cri::Failure;
    const auto failure = replies[i] ? std::nullopt : std::optional{replies[i].error().failure};
    if (failure == Unavailable || failure == Cancelled) {
      paused_ = true;  // nothing was written, and whoever watches the runtime tells that it is gone
      continue;
    }
    if (failure == DeadlineExceeded) ++unanswered;
    const bool is_done = !failure || failure == NotFound;
    written_[containers[i].container].cpuset = containers[i].cpuset;
    const bool had_failed = std::exchange(written_[containers[i].container].failed, !is_done);
    if (!is_done && !had_failed) warn(containers[i], replies[i].error().error);
  }
  if (unanswered == calls_at_a_time) paused_ = true;
}

void AllocationEnforcer::warn(const Due& container, const Error& error) {
  std::vector<std::string> places;
  if (!container.cpuset.cpus.empty()) places.push_back("CPUs " + container.cpuset.cpus);
  if (!container.cpuset.mems.empty()) places.push_back("the memory of NUMA nodes " + container.cpuset.mems);
  os::log_warning("{} is not confined to {}: {}; it is tried again every {}", container.name,
                  fmt::join(places, " and "), error.message, core::to_string(reconcile_period));
}

}  // namespace evictd::agent
