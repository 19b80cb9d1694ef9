#include "metrics/filled.hpp"

#include <chrono>

namespace evictd::test {
namespace {

using namespace std::chrono_literals;

v1::Event event(v1::Event::Kind kind) {
  v1::Event result;
  result.set_kind(kind);
  result.set_signal("memory.available");
  result.mutable_pod()->set_name("someones-secret");
  result.mutable_pod()->set_namespace_("someones-secret");
  result.set_message("someones-secret");
  return result;
}

void add_signal(v1::NodeStatus& node, const char* name, const char* unit, std::int64_t available, std::int64_t capacity,
                std::int64_t hard, std::int64_t soft) {
  auto& signal = *node.add_signals();
  signal.set_signal(name);
  signal.set_unit(unit);
  signal.set_available(available);
  signal.set_capacity(capacity);
  signal.set_fill_rate(2.5);
  signal.add_thresholds()->mutable_threshold()->set_resolved(hard);
  auto& second = *signal.add_thresholds();
  second.mutable_threshold()->set_resolved(soft);
  second.mutable_threshold()->mutable_grace_period()->set_seconds(90);
  second.mutable_met_since()->set_seconds(1);
}

void add_source(v1::NodeStatus& node, const char* name, const char* state, std::uint64_t wakes, std::uint64_t rearms) {
  auto& source = *node.add_wake_sources();
  source.set_name(name);
  source.set_state(state);
  source.set_wake_ups(wakes);
  source.set_rearms(rearms);
}

void add_latency(v1::NodeStatus& node) {
  auto& stage = *node.add_latencies();
  stage.set_signal("memory.available");
  stage.set_name("first_kill");
  stage.set_count(6);
  stage.set_sum_us(4500);
  for (const auto& [upper, count] : {std::pair{500, 1}, std::pair{1000, 3}, std::pair{2000, 0}}) {
    auto& bucket = *stage.add_buckets();
    bucket.set_upper_us(upper);
    bucket.set_count(static_cast<std::uint64_t>(count));
  }
  stage.add_buckets()->set_count(2);
}

}  // namespace

std::vector<v1::Event> every_event() {
  std::vector<v1::Event> events;
  auto intended = event(v1::Event::EVICTION_INTENDED);
  intended.mutable_eviction_intended()->set_reason("Evicted");
  intended.mutable_eviction_intended()->mutable_observation_age()->set_nanos(4'000'000);
  events.push_back(intended);
  events.push_back(intended);
  intended.mutable_eviction_intended()->set_dry_run(true);
  events.push_back(intended);
  auto preempted = event(v1::Event::EVICTION_INTENDED);
  preempted.set_signal("preemption");
  preempted.mutable_eviction_intended()->set_reason("Preempting");
  events.push_back(preempted);
  events.push_back(event(v1::Event::THRESHOLD_CROSSED));
  events.back().mutable_threshold_crossed()->mutable_threshold()->mutable_grace_period()->set_seconds(90);
  events.push_back(event(v1::Event::CONDITION_CHANGED));
  events.push_back(event(v1::Event::CONTAINERS_KILLED));
  events.push_back(event(v1::Event::MEMORY_RELEASED));
  events.back().mutable_memory_released()->set_released_bytes(1 << 20);
  events.push_back(event(v1::Event::CLEANUP_DONE));
  events.push_back(event(v1::Event::CLEANUP_DONE));
  events.back().mutable_cleanup_done()->set_timed_out(true);
  events.push_back(event(v1::Event::EVICTION_FAILED));
  events.back().mutable_eviction_failed()->set_step("StopContainer");
  events.push_back(event(v1::Event::RECOVERED));
  events.push_back(event(v1::Event::NODE_RECLAIMED));
  events.back().mutable_node_reclaimed()->set_images_removed(3);
  events.back().mutable_node_reclaimed()->set_containers_removed(2);
  events.push_back(event(v1::Event::TRIMMED));
  events.back().mutable_trimmed()->set_freed_bytes(5 << 20);
  events.push_back(event(v1::Event::ADMISSION_REJECTED));
  events.back().mutable_admission_rejected()->set_handler("sysctl");
  events.back().mutable_admission_rejected()->set_reason("SysctlForbidden");
  events.push_back(event(v1::Event::CONFIG_CHANGED));
  events.back().mutable_config_changed()->add_changes("log.level: info -> debug");
  events.push_back(event(v1::Event::SOURCE_DEGRADED));
  events.back().mutable_source_degraded()->set_source("psi");
  events.back().mutable_source_degraded()->set_state("failed: PSI is off");
  events.push_back(event(v1::Event::KERNEL_OOM));
  events.back().mutable_kernel_oom()->set_shortage("limit");
  events.back().mutable_kernel_oom()->set_own_choice(true);
  events.back().mutable_kernel_oom()->set_kills(3);
  events.push_back(event(v1::Event::NODE_SHUTDOWN));
  events.back().mutable_node_shutdown()->set_phase("begun");
  events.push_back(event(v1::Event::AUDIT));
  events.back().mutable_audit()->set_call("UpdateThresholds");
  events.back().mutable_audit()->set_outcome("PERMISSION_DENIED: someones-secret may not");
  events.push_back(event(v1::Event::AUDIT));
  events.back().mutable_audit()->set_call("UpdateThresholds");
  events.back().mutable_audit()->set_outcome("done");
  return events;
}

metrics::Snapshot full_snapshot() {
  metrics::Snapshot snapshot{.node = {}, .events_kept = 40, .events_missed = 5, .event_subscribers = 3};
  auto& node = snapshot.node;
  node.set_version("1.2.3");
  node.mutable_started()->set_seconds(1'700'000'000);
  node.set_passes(77);
  node.set_pods(110);
  node.set_last_event_sequence(41);
  node.mutable_runtime()->set_connected(true);
  auto& condition = *node.add_conditions();
  condition.set_type("MemoryPressure");
  condition.set_status(true);
  add_signal(node, "memory.available", "bytes", 1 << 30, 2LL << 30, 300 << 20, 500 << 20);
  add_signal(node, "nodefs.inodesFree", "inodes", 4'000'000, 5'000'000, 250'000, 300'000);
  add_signal(node, "pid.available", "pids", 31'000, 32'768, 100, 200);
  add_source(node, "memcg memory.available<300Mi", "armed", 9, 4);
  add_source(node, "memcg memory.available<300Mi unless file cache", "armed", 9, 4);
  add_source(node, "psi /kubepods", "failed: no", 1, 0);
  add_source(node, "timer", "armed", 12, 0);
  auto& self_test = *node.add_wake_sources();
  self_test.set_name("self-test /evictd-probe");
  self_test.set_re_registrations(2);
  self_test.set_missed(3);
  add_source(node, "tripwire /kubepods", "armed", 5, 1);
  node.mutable_wake_sources()->rbegin()->set_spurious(2);
  node.mutable_reactor()->set_long_turns(6);
  node.mutable_reactor()->mutable_longest_turn()->set_nanos(250'000'000);
  node.mutable_reactor()->mutable_busiest_turn()->set_nanos(30'000'000);
  node.mutable_reactor()->set_standstills(1);
  node.mutable_reactor()->mutable_longest_standstill()->set_seconds(3);
  add_latency(node);
  auto& eviction = *node.add_in_flight();
  eviction.mutable_pod()->set_name("someones-secret");
  eviction.set_bytes(64 << 20);
  auto& source = *node.add_pod_sources();
  source.set_name("kubelet");
  source.set_state("synced");
  node.mutable_cluster_reports()->set_waiting(2);
  node.mutable_cluster_reports()->set_statuses(8);
  return snapshot;
}

std::string filled_text() {
  metrics::Exposition exposition;
  for (const auto& event : every_event()) exposition.count(event);
  exposition.count("StopContainer", "OK", 60ms);
  exposition.count("StopContainer", "DEADLINE_EXCEEDED", 2s);
  return exposition.text(full_snapshot());
}

}  // namespace evictd::test
