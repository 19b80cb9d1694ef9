#pragma once
#include <evictd.pb.h>

#include <cstdint>
#include <string>

#include "agent/latency.hpp"
#include "core/duration.hpp"
#include "core/observation.hpp"
#include "core/pod.hpp"
#include "core/ranked_pod.hpp"
#include "core/signal.hpp"
#include "core/threshold.hpp"
#include "pods/spec_source.hpp"
#include "wake/source.hpp"
#include "wake/turn_watch.hpp"

// The core's values as the API's messages.
namespace evictd::agent {

[[nodiscard]] v1::PodReference describe_pod(const core::Pod& pod);
[[nodiscard]] v1::Threshold describe_threshold(const core::Threshold& threshold, std::int64_t capacity);
[[nodiscard]] v1::Observation describe_observation(const core::Observation& observation);
[[nodiscard]] v1::RankedPod describe_ranked(const core::RankedPod& ranked);
[[nodiscard]] v1::WakeSource describe_source(const wake::SourceStatus& status);
[[nodiscard]] v1::ReactorStatus describe_reactor(const wake::Lateness& lateness);
[[nodiscard]] v1::PodSourceStatus describe_pod_source(const pods::SpecSourceStatus& status);
[[nodiscard]] v1::LatencyStage describe_latency(const std::string& cause, Phase phase,
                                                const LatencyHistogram& histogram);

/// A moment of the monotonic clock on the wall clock, as that stands now.
[[nodiscard]] google::protobuf::Timestamp wall_time(core::Instant time);

[[nodiscard]] google::protobuf::Duration to_duration(core::Duration duration);

/// For people: "249.8 MiB".
[[nodiscard]] std::string human_bytes(std::int64_t bytes);
/// The same for a signal's amounts, which may be counted: "5000".
[[nodiscard]] std::string amount(core::Signal signal, std::int64_t value);

}  // namespace evictd::agent
