#include "agent/describe.hpp"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cmath>

#include "core/signal.hpp"
#include "kube/wall_time.hpp"

namespace evictd::agent {

v1::PodReference describe_pod(const core::Pod& pod) {
  v1::PodReference reference;
  reference.set_namespace_(pod.name_space);
  reference.set_name(pod.name);
  reference.set_uid(pod.uid);
  return reference;
}

v1::Threshold describe_threshold(const core::Threshold& threshold, std::int64_t capacity) {
  v1::Threshold message;
  message.set_signal(std::string(core::name(threshold.signal)));
  message.set_unit(std::string(core::unit_of(threshold.signal)));
  message.set_operator_("LessThan");
  message.set_value(threshold.value.to_string());
  message.set_resolved(threshold.value.of(capacity));
  if (!threshold.is_hard()) *message.mutable_grace_period() = to_duration(threshold.grace);
  if (threshold.min_reclaim) message.set_minimum_reclaim(threshold.min_reclaim->to_string());
  return message;
}

v1::Observation describe_observation(const core::Observation& observation) {
  v1::Observation message;
  message.set_available(observation.available);
  message.set_capacity(observation.capacity);
  return message;
}

v1::RankedPod describe_ranked(const core::RankedPod& ranked) {
  v1::RankedPod message;
  *message.mutable_pod() = describe_pod(*ranked.pod);
  message.set_usage(ranked.usage);
  message.set_request(ranked.request);
  message.set_priority(ranked.pod->priority.value_or(0));
  message.set_at_most(ranked.at_most);
  message.set_critical(core::is_critical(*ranked.pod));
  return message;
}

v1::WakeSource describe_source(const wake::SourceStatus& status) {
  v1::WakeSource message;
  message.set_name(status.name);
  message.set_state(status.state);
  if (status.level) message.set_arm_level_bytes(*status.level);
  message.set_wake_ups(status.wakes);
  if (status.last_wake) *message.mutable_last_wake() = wall_time(*status.last_wake);
  message.set_detail(status.detail);
  message.set_rearms(status.rearms);
  message.set_re_registrations(status.re_registrations);
  message.set_missed(status.missed);
  message.set_spurious(status.spurious);
  return message;
}

v1::ReactorStatus describe_reactor(const wake::Lateness& lateness) {
  v1::ReactorStatus message;
  message.set_long_turns(lateness.long_turns);
  *message.mutable_longest_turn() = to_duration(lateness.longest_turn);
  message.set_standstills(lateness.standstills);
  *message.mutable_longest_standstill() = to_duration(lateness.longest_standstill);
  *message.mutable_busiest_turn() = to_duration(lateness.busiest_turn);
  return message;
}

v1::PodSourceStatus describe_pod_source(const pods::SpecSourceStatus& status) {
  constexpr std::array states{"waiting", "synced", "stale"};
  v1::PodSourceStatus message;
  message.set_name(std::string(pods::name(status.origin)));
  message.set_state(states[static_cast<std::size_t>(status.state)]);
  message.set_pods(static_cast<std::uint32_t>(status.pods));
  if (status.stale_since) *message.mutable_stale_since() = wall_time(*status.stale_since);
  if (status.last_contact) *message.mutable_last_contact() = wall_time(*status.last_contact);
  message.set_error(status.error);
  return message;
}

v1::LatencyStage describe_latency(const std::string& cause, Phase phase, const LatencyHistogram& histogram) {
  const auto microseconds = [](core::Duration time) {
    return std::chrono::duration_cast<std::chrono::microseconds>(time).count();
  };
  v1::LatencyStage message;
  message.set_signal(cause);
  message.set_name(std::string(name(phase)));
  message.set_since(std::string(since(phase)));
  message.set_count(histogram.count());
  message.set_sum_us(microseconds(histogram.sum()));
  message.set_max_us(microseconds(histogram.max()));
  message.set_median_us(microseconds(histogram.quantile(0.5)));
  message.set_p90_us(microseconds(histogram.quantile(0.9)));
  const auto bounds = LatencyHistogram::bounds();
  for (std::size_t i = 0; i < histogram.buckets().size(); ++i) {
    auto& bucket = *message.add_buckets();
    if (i < bounds.size()) bucket.set_upper_us(microseconds(bounds[i]));
    bucket.set_count(histogram.buckets()[i]);
  }
  return message;
}

google::protobuf::Duration to_duration(core::Duration duration) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration);
  google::protobuf::Duration message;
  message.set_seconds(seconds.count());
  message.set_nanos(static_cast<std::int32_t>((duration - seconds).count()));
  return message;
}

google::protobuf::Timestamp wall_time(core::Instant time) {
  const auto since_epoch = kube::wall_time_of(time).time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since_epoch);
  google::protobuf::Timestamp timestamp;
  timestamp.set_seconds(seconds.count());
  timestamp.set_nanos(static_cast<std::int32_t>(std::chrono::nanoseconds(since_epoch - seconds).count()));
  return timestamp;
}

std::string human_bytes(std::int64_t bytes) {
  constexpr std::array units{"KiB", "MiB", "GiB", "TiB"};
  auto amount = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; std::abs(amount) >= 1024 && unit + 1 < units.size(); ++unit) amount /= 1024;
  return fmt::format("{:.1f} {}", amount, units[unit]);
}

std::string amount(core::Signal signal, std::int64_t value) {
  return core::is_counted(signal) ? std::to_string(value) : human_bytes(value);
}

}  // namespace evictd::agent
