#pragma once
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "core/duration.hpp"
#include "core/eligibility.hpp"
#include "core/eviction.hpp"
#include "core/observation.hpp"
#include "core/pod.hpp"
#include "core/pressure.hpp"
#include "core/ranked_pod.hpp"
#include "core/signal.hpp"
#include "core/threshold.hpp"

namespace evictd::core {

/// Which numbers of the pods a pass needs.
enum class Measure : std::uint8_t {
  Memory,  ///< working sets, as far as they decide (core/deciding_usage.hpp); asked for when memory is short
  Processes,
  Disk,                ///< bytes and inodes on disk, measured now: may take seconds
  LocalStorageLimits,  ///< what is known of volumes, logs and layers: asked for in every pass, must be answered from
                       ///< memory
};

[[nodiscard]] Measure measure_for(RankBy by);

/// Answered by PodsMeasured.
struct ReadPodUsage {
  Measure measure = Measure::Memory;
  PodListPtr pods;
  std::vector<Eligibility> eligibilities{};  ///< one for each pod where a threshold asks; empty for limits
};

/// Free what no running pod needs; answered by NodeReclaimed. Containers go before images.
struct ReclaimNode {
  Threshold threshold;
  bool containers = false;
  bool images = false;
};

/// A threshold acts, and there is no pod that may be evicted.
struct NoVictim {
  Acted acted;
  std::vector<RankedPod> ranking;
};

/// A threshold acts, but as many pods as may go in a minute have gone.
struct RateLimited {
  Acted acted;
  Instant until;
  bool after_change = false;  ///< so few because the thresholds changed less than a minute ago
};

/// The shortage ended before the victim was evicted: no pod is evicted.
struct Recovered {
  Acted acted;  ///< with the observation that says so
};

/// A threshold that was not met in the pass before is met now.
struct ReportCrossing {
  Acted acted;
};

/// The node conditions changed; these hold now.
struct ReportConditions {
  NodeConditions conditions;
};

/// Begin a pass at this time if nothing else does; absent: no need. Replaces what was asked before.
struct WakeAt {
  std::optional<Instant> time;
};

/// A signal's level that should wake a pass when crossed, in either direction.
struct Level {
  Signal signal = Signal::MemoryAvailable;
  std::int64_t available = 0;  ///< the threshold's value, in the signal's unit
  bool hard = true;            ///< of a threshold without a grace period

  friend bool operator==(const Level&, const Level&) = default;
};

/// The levels to be notified of; replaces those before.
struct ArmLevels {
  std::vector<Level> levels;
};

/// Everything a pass can ask for, to be done in the order given.
using Action = std::variant<ReadPodUsage, ReclaimNode, Eviction, NoVictim, RateLimited, Recovered, ReportCrossing,
                            ReportConditions, WakeAt, ArmLevels>;
using Actions = std::vector<Action>;

/// Whether what it asks for takes seconds, because disks are walked or images removed. All else is done at once.
[[nodiscard]] bool takes_time(const Action& action);

/// One line, for failing tests and debug logs.
std::ostream& operator<<(std::ostream& out, const Action& action);
std::ostream& operator<<(std::ostream& out, const Actions& actions);

}  // namespace evictd::core
