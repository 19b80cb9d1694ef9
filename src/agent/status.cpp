#include "agent/status.hpp"

#include <evictd.pb.h>

#include <cstdint>
#include <string>

#include "agent/cluster_report.hpp"
#include "agent/describe.hpp"
#include "core/pressure.hpp"
#include "core/signal.hpp"

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

void add_conditions(v1::NodeStatus& status, const StatusParts& parts) {
  for (const auto& row : core::node_condition_rows) {
    auto& message = *status.add_conditions();
    message.set_type(std::string(row.name));
    message.set_status(parts.synchronizer.conditions().contains(row.condition));
    if (const auto since = parts.reports.since(row.condition)) *message.mutable_since() = wall_time(*since);
  }
}

void add_signals(v1::NodeStatus& status, const StatusParts& parts, core::Instant now) {
  const auto observations = parts.reports.look(now);
  for (const auto signal : core::all_signals()) {
    const auto& observation = observations[signal];
    v1::SignalStatus message;
    message.set_signal(std::string(core::name(signal)));
    message.set_unit(std::string(core::unit_of(signal)));
    if (observation) {
      message.set_available(observation->available);
      message.set_capacity(observation->capacity);
    }
    add_thresholds(message, signal, parts.synchronizer, observation ? observation->capacity : 0);
    if (const auto rate = parts.reports.fill_rates().rate(signal)) message.set_fill_rate(*rate);
    if (observation || message.thresholds_size() > 0) *status.add_signals() = std::move(message);
  }
}

void add_in_flight(v1::NodeStatus& status, const StatusParts& parts) {
  for (const auto& [uid, record] : parts.records.under_way()) {
    auto& message = *status.add_in_flight();
    *message.mutable_pod() = describe_pod(*record.pod);
    message.set_eviction_id(record.id);
    *message.mutable_since() = wall_time(record.turn.wake.time);
    message.set_bytes(parts.usage.held(uid));
  }
}

void add_runtime(v1::NodeStatus& status, const StatusParts& parts) {
  auto& runtime = *status.mutable_runtime();
  runtime.set_endpoint(parts.runtime.endpoint());
  runtime.set_connected(parts.runtime.connected());
  const auto& name = parts.runtime_watch.name();
  const auto space = name.find(' ');
  runtime.set_name(name.substr(0, space));
  if (space != std::string::npos) runtime.set_version(name.substr(space + 1));
}

}  // namespace

v1::NodeStatus describe_status(const StatusParts& parts, core::Instant now) {
  async::Turns::doing("a status");
  v1::NodeStatus status;
  add_signals(status, parts, now);
  parts.disk.refresh();
  status.set_passes(parts.reports.passes());
  status.set_evictions(parts.evictions.count());
  status.set_pods(static_cast<std::uint32_t>(parts.pods.pods()->size()));
  add_conditions(status, parts);
  for (const auto& source : parts.alarms.sources())
    for (const auto& entry : source->status()) *status.add_wake_sources() = describe_source(entry);
  for (const auto& source : parts.catalog.status()) *status.add_pod_sources() = describe_pod_source(source);
  add_in_flight(status, parts);
  for (const auto& [key, histogram] : parts.recorder.latencies().histograms())
    *status.add_latencies() = describe_latency(key.first, key.second, histogram);
  if (parts.cluster != nullptr) *status.mutable_cluster_reports() = describe_reports(parts.cluster->status());
  add_runtime(status, parts);
  return status;
}

}  // namespace evictd::agent
