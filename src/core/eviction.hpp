#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/displacement.hpp"
#include "core/duration.hpp"
#include "core/eviction_message.hpp"
#include "core/local_storage.hpp"
#include "core/observation.hpp"
#include "core/pod.hpp"
#include "core/ranked_pod.hpp"
#include "core/signal.hpp"
#include "core/threshold.hpp"

namespace evictd::core {

/// Why a pod goes: a signal's threshold, a limit of its own, or others' need. The names of the first two are the
/// kubelet's metric labels.
using EvictionCause = std::variant<Signal, LocalStorageLimit, Displacement>;
[[nodiscard]] std::string_view name(const EvictionCause& cause);
/// The names of all causes: of the signals first, in their order.
[[nodiscard]] std::vector<std::string_view> cause_names();
/// The cause that has this name.
[[nodiscard]] std::optional<EvictionCause> parse_cause(std::string_view name);
/// What the pod's status gives as the reason: "Evicted", "Preempting", "Terminated". (kubelet: eviction, preemption,
/// nodeshutdown)
[[nodiscard]] std::string_view reason(const EvictionCause& cause);

/// The threshold that acted and what it saw.
struct Acted {
  Threshold threshold;
  Observation observation;

  friend bool operator==(const Acted&, const Acted&) = default;
};

/// What a pod gives back of a disk that it does not go for, and by what it shows that the disk has it back. In the
/// signal's unit.
struct DiskRelease {
  Signal signal{};
  std::int64_t amount = 0;     ///< as it was measured
  std::int64_t available = 0;  ///< before any of it was back

  friend bool operator==(const DiskRelease&, const DiskRelease&) = default;
};

/// This pod has to go. A pass decides on at most one because of a threshold, and on any number because of their own
/// limits. What becomes of it is added by those who carry it out (evict::EvictionRecord).
struct Eviction {
  PodPtr pod{};
  EvictionCause cause{};
  Duration grace_period{};            ///< zero: killed at once
  EvictionMessage message{};          ///< as the pod's status says it
  std::optional<Acted> acted{};       ///< absent for limits and displacements
  std::vector<RankedPod> ranking{};   ///< those that were compared, first to go first; empty where acted is absent
  std::int64_t expected_release = 0;  ///< in the signal's unit; what counts as in flight
  std::map<Signal, std::int64_t> also_released{};  ///< of other signals, as far as it was measured
  /// The largest of these that are of a disk which was read; absent where a threshold acted.
  std::optional<DiskRelease> disk_release{};
};

/// Where the pod is killed at once for want of memory: how many bytes the hard threshold wants available. A pod may be
/// held then (core/held_time.hpp), for its end takes memory that is not there.
[[nodiscard]] std::optional<std::int64_t> memory_required_at_once(const Eviction& eviction);

/// What the pod's condition DisruptionTarget says: the status's message, but for a preemption. Nothing for a pod that
/// exceeded a limit of its own, which is no disruption. (kubelet: eviction_manager.go, preemption.go:114,
/// nodeshutdown_manager.go)
[[nodiscard]] std::optional<std::string> disruption_message(const Eviction& eviction);

}  // namespace evictd::core
