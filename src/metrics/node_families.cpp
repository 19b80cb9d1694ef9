#include "metrics/node_families.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/signal.hpp"
#include "metrics/families.hpp"

namespace evictd::metrics {
namespace {

double seconds(const google::protobuf::Timestamp& time) {
  return static_cast<double>(time.seconds()) + static_cast<double>(time.nanos()) / 1e9;
}

double seconds(const google::protobuf::Duration& time) {
  return static_cast<double>(time.seconds()) + static_cast<double>(time.nanos()) / 1e9;
}

double number(auto value) { return static_cast<double>(value); }

std::string in_unit(std::string_view help, std::string_view unit) { return fmt::format("{}, in {}.", help, unit); }

bool is_hard(const v1::ThresholdStatus& status) {
  const auto& grace = status.threshold().grace_period();
  return grace.seconds() == 0 && grace.nanos() == 0;
}

/// Without a grace period a soft threshold is a hard one, beside that of evictionHard: pods go by the one that is met
/// first, and a second series of the same labels would be dropped.
void add_threshold(Families& families, const v1::SignalStatus& signal, bool hard, std::string_view unit) {
  const v1::ThresholdStatus* first = nullptr;
  for (const auto& status : signal.thresholds())
    if (is_hard(status) == hard && (first == nullptr || status.threshold().resolved() > first->threshold().resolved()))
      first = &status;
  if (first == nullptr) return;
  const auto& status = *first;
  const auto& grace = status.threshold().grace_period();
  const Families::Labels labels{{"signal", signal.signal()}, {"kind", hard ? "hard" : "soft"}};
  families.gauge("evictd_signal_threshold_" + std::string(unit),
                 in_unit("Pods are evicted once less is available (soft: for longer than the grace period)", unit),
                 number(status.threshold().resolved()), labels);
  families.gauge("evictd_signal_threshold_met", "1 while less is available than the threshold says.",
                 number(status.has_met_since()), labels);
  families.gauge("evictd_signal_threshold_grace_period_seconds",
                 "How long a threshold must be met before a pod is evicted.", seconds(grace), labels);
}

void add_signals(Families& families, const v1::NodeStatus& node) {
  for (const auto& signal : node.signals()) {
    const std::string_view unit = signal.unit();
    const Families::Labels labels{{"signal", signal.signal()}};
    const auto name = [&](std::string_view what) { return "evictd_signal_" + std::string(what) + std::string(unit); };
    if (signal.has_available())
      families.gauge(name("available_"), in_unit("What is available of what the signal measures", unit),
                     number(signal.available()), labels);
    if (signal.has_capacity())
      families.gauge(name("capacity_"), in_unit("What the node has of what the signal measures", unit),
                     number(signal.capacity()), labels);
    if (signal.has_fill_rate())
      families.gauge(name("fill_") + "_per_second",
                     in_unit("How fast it is used up each second, negative where it comes back", unit),
                     signal.fill_rate(), labels);
    for (const bool hard : {true, false}) add_threshold(families, signal, hard, unit);
  }
}

/// "memcg memory.available<300Mi unless file cache" is the source "memcg" and watches "memory.available". Entries that
/// differ in the level alone are one: they share their counts.
std::pair<std::string, std::string> split(std::string_view name) {
  const auto blank = std::min(name.find(' '), name.size());
  const auto source = name.substr(0, blank);
  auto target = name.substr(std::min(blank + 1, name.size()));
  target = target.substr(0, target.find('<'));
  return {std::string(source), std::string(target)};
}

struct SourceCounts {
  std::uint64_t wakes = 0;
  std::uint64_t rearms = 0;
  std::uint64_t re_registrations = 0;
  std::uint64_t missed = 0;
  std::uint64_t spurious = 0;
  bool failed = false;
};

void add_wake_sources(Families& families, const v1::NodeStatus& node) {
  std::map<std::pair<std::string, std::string>, SourceCounts> sources;
  for (const auto& entry : node.wake_sources()) {
    auto& counts = sources[split(entry.name())];
    counts.wakes = std::max(counts.wakes, entry.wake_ups());
    counts.rearms = std::max(counts.rearms, entry.rearms());
    counts.re_registrations = std::max(counts.re_registrations, entry.re_registrations());
    counts.missed = std::max(counts.missed, entry.missed());
    counts.spurious = std::max(counts.spurious, entry.spurious());
    counts.failed = counts.failed || entry.state().starts_with("failed");
  }
  for (const auto& [name, counts] : sources) {
    const Families::Labels labels{{"source", name.first}, {"target", name.second}};
    families.counter("evictd_wake_ups_total", "How often a source made the agent look, by source and what it watches.",
                     number(counts.wakes), labels);
    families.counter("evictd_notifier_rearms_total",
                     "How often what a source has in the kernel was armed anew: for another level, or after a loss.",
                     number(counts.rearms), labels);
    families.counter("evictd_notifier_re_registrations_total",
                     "How often a source was registered with the kernel anew because the registration was lost or "
                     "silent.",
                     number(counts.re_registrations), labels);
    families.counter("evictd_notifier_missed_total",
                     "What a source should have told and did not: crossings, and self-tests.", number(counts.missed),
                     labels);
    families.counter("evictd_notifier_spurious_total",
                     "What a source told that a reading did not find: a tripwire that file cache tripped, say.",
                     number(counts.spurious), labels);
    families.gauge("evictd_wake_source_failed", "1 while a source of wake-ups cannot do its work.",
                   number(counts.failed), labels);
  }
}

void add_latencies(Families& families, const v1::NodeStatus& node) {
  for (const auto& stage : node.latencies()) {
    prometheus::ClientMetric::Histogram histogram;
    histogram.sample_count = stage.count();
    histogram.sample_sum = number(stage.sum_us()) / 1e6;
    std::uint64_t below = 0;
    for (const auto& bucket : stage.buckets()) {
      below += bucket.count();
      histogram.bucket.push_back({.cumulative_count = below,
                                  .upper_bound = bucket.has_upper_us() ? number(bucket.upper_us()) / 1e6
                                                                       : std::numeric_limits<double>::infinity()});
    }
    families.histogram("evictd_eviction_stage_duration_seconds",
                       "How long evictions took: to the decision since the wake-up, to all other stages since the "
                       "decision. Evictions with a grace period have none after the decision.",
                       std::move(histogram), {{"signal", stage.signal()}, {"stage", stage.name()}});
  }
}

void add_evictions_under_way(Families& families, const v1::NodeStatus& node) {
  std::int64_t bytes = 0;
  for (const auto& eviction : node.in_flight()) bytes += std::max<std::int64_t>(eviction.bytes(), 0);
  families.gauge("evictd_evictions_in_flight", "Evictions whose cleanup is awaited.", number(node.in_flight_size()));
  families.gauge("evictd_in_flight_bytes", "Memory that evicted pods still hold, and that is expected back.",
                 number(bytes));
}

void add_reports(Families& families, const v1::NodeStatus& node) {
  if (!node.has_cluster_reports()) return;
  const auto& reports = node.cluster_reports();
  families.gauge("evictd_cluster_reports_waiting", "Reports that the API server has not got yet.",
                 number(reports.waiting()));
  families.counter("evictd_cluster_reports_dropped_total", "Reports to the API server that were given up.",
                   number(reports.dropped()));
  const auto sent = [&](std::string_view what, std::uint64_t count) {
    families.counter("evictd_cluster_reports_sent_total", "Reports that the API server took, by what they were.",
                     number(count), {{"report", what}});
  };
  sent("status", reports.statuses() - reports.statuses_again());
  sent("status_again", reports.statuses_again());
  sent("deletion", reports.deletions());
  sent("event", reports.events());
  sent("node", reports.node_updates());
}

void add_reactor(Families& families, const v1::NodeStatus& node) {
  const auto& reactor = node.reactor();
  families.counter("evictd_reactor_long_turns_total", "Turns of the one loop that took longer than 100 ms.",
                   number(reactor.long_turns()));
  families.gauge("evictd_reactor_longest_turn_seconds", "The longest of them since the start.",
                 seconds(reactor.longest_turn()));
  families.gauge("evictd_reactor_busiest_turn_seconds",
                 "The most processor time that one turn of the loop took since the start, however short.",
                 seconds(reactor.busiest_turn()));
  families.counter("evictd_standstills_total",
                   "How often the whole process stood still for longer than 100 ms: stopped, frozen or without a "
                   "processor.",
                   number(reactor.standstills()));
  families.gauge("evictd_longest_standstill_seconds", "The longest of them since the start.",
                 seconds(reactor.longest_standstill()));
}

void add_agent(Families& families, const v1::NodeStatus& node) {
  families.gauge("evictd_build_info", "Always 1; the version is in the label.", 1, {{"version", node.version()}});
  families.gauge("evictd_start_time_seconds", "When evictd started, in seconds since 1970.", seconds(node.started()));
  families.gauge("evictd_dry_run", "1 where nothing is evicted: --dry-run, or evictd only watches.",
                 number(node.dry_run()));
  families.counter("evictd_passes_total", "How often the node was looked at.", number(node.passes()));
  families.gauge("evictd_pods", "Pods that evictd knows on the node.", number(node.pods()));
  families.gauge("evictd_runtime_connected", "1 while the container runtime answers.",
                 number(node.runtime().connected()));
  for (const auto& condition : node.conditions())
    families.gauge("evictd_node_condition", "1 while the node has the condition.", number(condition.status()),
                   {{"condition", condition.type()}});
  for (const auto& source : node.pod_sources())
    families.gauge("evictd_pod_source_synced", "1 while a source of pods' specs is in touch.",
                   number(source.state() == "synced"), {{"source", source.name()}});
}

}  // namespace

std::vector<prometheus::MetricFamily> NodeFamilies::Collect() const {
  Families families;
  const auto& node = snapshot_.node;
  add_agent(families, node);
  add_reactor(families, node);
  add_signals(families, node);
  add_wake_sources(families, node);
  add_latencies(families, node);
  add_evictions_under_way(families, node);
  add_reports(families, node);
  families.gauge("evictd_event_log_kept", "Events in the log, for those who subscribe later.",
                 number(snapshot_.events_kept));
  families.gauge("evictd_event_last_sequence", "The number of the newest event; 0 where there was none.",
                 number(node.last_event_sequence()));
  families.gauge("evictd_event_subscribers", "Streams that follow the events.", number(snapshot_.event_subscribers));
  families.counter("evictd_events_dropped_total", "Events that subscribers missed because they read too slowly.",
                   number(snapshot_.events_missed));
  return families.take();
}

}  // namespace evictd::metrics
