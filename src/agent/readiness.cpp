#include "agent/readiness.hpp"

#include <algorithm>
#include <utility>

#include "async/turns.hpp"
#include "core/eligibility.hpp"
#include "core/eviction_message.hpp"
#include "core/eviction_order.hpp"
#include "core/signal.hpp"
#include "core/threshold.hpp"
#include "core/usage.hpp"
#include "core/wake.hpp"
#include "evict/eviction_record.hpp"

namespace evictd::agent {
namespace {

bool acts_on_memory(const core::Synchronizer& policy) {
  return std::ranges::any_of(policy.thresholds(), core::is_memory, &core::Threshold::signal);
}

/// `last` may be the least time there is.
bool is_due(core::Instant last, core::Duration interval, core::Instant now) { return last <= now - interval; }

}  // namespace

void Readiness::pods_changed(const core::PodList& /*pods*/) {
  if (acts_on_memory(parts_.policy)) {
    const auto likeliest = prepare_strike(parts_.usage.memory_as_listed(parts_.policy.pods()));
    if (!told_ && !likeliest.empty()) rehearse_telling(likeliest.front());
  } else {
    parts_.strike.prepare({}, parts_.clock.now());
    if (parts_.black_box != nullptr) parts_.black_box->look({}, parts_.clock.now());
  }
}

void Readiness::approaches() {
  const auto now = parts_.clock.now();
  if (!acts_on_memory(parts_.policy) || !is_due(looked_, between_looks, now)) return;
  async::Turns::doing("making ready");
  looked_ = now;
  const auto& pods = parts_.policy.pods();
  parts_.usage.prepare(pods);
  if (is_due(rehearsed_, between_rehearsals, now)) {
    rehearsed_ = now;
    rehearse();
  } else {
    prepare_strike(parts_.usage.memory_as_listed(pods));
  }
}

/// In the order of a pass.
void Readiness::rehearse() {
  const auto& pods = parts_.policy.pods();
  std::vector<core::Eligibility> eligibilities;
  eligibilities.reserve(pods->size());
  for (const auto& pod : *pods) eligibilities.push_back(parts_.policy.eligibility(core::Signal::MemoryAvailable, *pod));
  const auto likeliest = prepare_strike(parts_.usage.memory(pods, eligibilities));
  if (likeliest.empty()) return;
  rehearse_telling(likeliest.front());
  parts_.strike.rehearse(*likeliest.front());
}

/// As Evictions begins an eviction.
void Readiness::rehearse_telling(const pods::RuntimePodPtr& victim) {
  told_ = true;
  const auto threshold = *std::ranges::find_if(parts_.policy.thresholds(), core::is_memory, &core::Threshold::signal);
  const core::PodPtr& pod = victim->pod;
  const core::PodUsage usage{.working_set = parts_.usage.held(pod->uid)};
  const auto now = parts_.clock.now();
  const core::Observation observation{.time = now};
  evict::EvictionRecord record;
  record.pod = pod;
  record.cause = threshold.signal;
  record.acted = core::Acted{threshold, observation};
  record.ranking.push_back({.pod = pod});
  record.message = core::eviction_message(threshold, observation, *pod, parts_.usage.with_containers(*pod, usage));
  record.turn.wake = {.time = now, .reasons = {{core::WakeSource::Memcg, "rehearsal", now}}};
  for (const auto stage : {core::Stage::Observed, core::Stage::Measured, core::Stage::Decided})
    record.turn.reach(stage, now);
  record.runtime = victim;
  parts_.log.rehearse(record);
  parts_.state.rehearse(record);
}

Readiness::Pods Readiness::prepare_strike(const PodUsages& usage) {
  const auto now = parts_.clock.now();
  Pods likeliest;
  for (const auto& placed : parts_.policy.ranking(core::Signal::MemoryAvailable, *parts_.policy.pods(), usage, now)) {
    if (likeliest.size() == evict::ReadyStrike::most_pods) break;
    if (!core::may_go(placed.ranked)) continue;
    if (auto pod = parts_.pods.find(placed.ranked.pod->uid)) likeliest.push_back(std::move(pod));
  }
  parts_.strike.prepare(likeliest, now);
  if (parts_.black_box != nullptr) parts_.black_box->look(likeliest, now);
  return likeliest;
}

}  // namespace evictd::agent
