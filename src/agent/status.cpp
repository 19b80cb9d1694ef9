#include <evictd.pb.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "agent/agent.hpp"
#include "agent/cluster_report.hpp"
#include "agent/describe.hpp"
#include "async/turns.hpp"
#include "core/signal.hpp"
#include "core/synchronizer.hpp"

namespace evictd::agent {
namespace {

void add_thresholds(v1::SignalStatus& status, core::Signal signal, const core::Synchronizer& synchronizer,
                    std::int64_t capacity) {
  for (const auto& threshold : synchronizer.thresholds()) {
    if (threshold.signal != signal) continue;
    auto& message = *status.add_thresholds();
    *message.mutable_threshold() = describe_threshold(threshold, capacity);
    if (const auto since = synchronizer.met_since(threshold)) *message.mutable_met_since() = wall_time(*since);
  }
}

}  // namespace

v1::NodeStatus Agent::status() {
  async::Turns::doing("a status");
  const auto now = std::chrono::steady_clock::now();
  const auto reading = parts_.observer.read(now);
  parts_.disk.refresh();
  const auto& observations = reading ? reading->observations : reading_.observations;
  if (reading) fill_rates_.observe(observations, now);
  v1::NodeStatus status;
  status.set_dry_run(options_.dry_run);
  status.set_passes(passes_);
  status.set_evictions(evicted_);
  status.set_pods(static_cast<std::uint32_t>(parts_.pods.pods()->size()));

  for (const auto condition : core::all_node_conditions) {
    auto& message = *status.add_conditions();
    message.set_type(std::string(core::name(condition)));
    message.set_status(synchronizer_.conditions().contains(condition));
    if (const auto since = conditions_since_.find(condition); since != conditions_since_.end())
      *message.mutable_since() = wall_time(since->second);
  }
  for (const auto signal : core::all_signals) {
    const auto& observation = observations[signal];
    v1::SignalStatus message;
    message.set_signal(std::string(core::name(signal)));
    if (observation) {
      message.set_available(observation->available);
      message.set_capacity(observation->capacity);
    }
    add_thresholds(message, signal, synchronizer_, observation ? observation->capacity : 0);
    if (const auto rate = fill_rates_.rate(signal)) message.set_fill_rate(*rate);
    if (observation || message.thresholds_size() > 0) *status.add_signals() = std::move(message);
  }
  for (const auto& source : parts_.sources)
    for (const auto& entry : source->status()) *status.add_wake_sources() = describe_source(entry);
  for (const auto& source : parts_.catalog.status()) *status.add_pod_sources() = describe_pod_source(source);
  for (const auto& [uid, record] : evictions_) {
    auto& message = *status.add_in_flight();
    *message.mutable_pod() = describe_pod(*record.pod);
    message.set_eviction_id(record.id);
    *message.mutable_since() = wall_time(record.turn.wake.time);
    message.set_bytes(parts_.cgroups.usage(uid).value_or(0));
  }
  for (const auto& [key, histogram] : parts_.recorder.latencies().histograms())
    *status.add_latencies() = describe_latency(key.first, key.second, histogram);
  if (parts_.cluster != nullptr) *status.mutable_cluster_reports() = describe_reports(parts_.cluster->status());
  status.mutable_runtime()->set_endpoint(parts_.runtime.endpoint());
  status.mutable_runtime()->set_connected(parts_.runtime.connected());
  const auto space = runtime_name_.find(' ');
  status.mutable_runtime()->set_name(runtime_name_.substr(0, space));
  if (space != std::string::npos) status.mutable_runtime()->set_version(runtime_name_.substr(space + 1));
  return status;
}

}  // namespace evictd::agent
