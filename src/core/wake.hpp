#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/duration.hpp"

namespace evictd::core {

/// What can begin a pass of the loop. Events, the state file and `evictctl status` have its name().
enum class WakeSource : std::uint8_t {
  // The kernel, and what asks it in between.
  Memcg,
  Psi,
  Sampler,
  MemoryEvents,
  Oom,
  KernelOom,
  Fence,
  Tripwire,
  Cgroups,
  Files,
  SelfTest,
  Turns,
  // Time.
  Timer,
  Deadline,
  // What is read from files, and by whom the agent is told.
  Configuration,
  DropIns,
  DropInsPlace,
  Kubelet,
  Thresholds,
  Manifests,
  Images,
  Runtime,
  Pods,
  Disk,
  // What evictd itself did.
  Start,
  Stop,
  Restart,
  Followup,
  Killed,
  Released,
  Cleanup,
  DryRun,
  Preemption,
  Shutdown,
  Trimmed,
  Other,  ///< restored from the state of an evictd that knew more sources
};
/// "memcg", "timer", …
[[nodiscard]] std::string_view name(WakeSource source);
/// The source that has this name; absent: none has.
[[nodiscard]] std::optional<WakeSource> parse_wake_source(std::string_view name);

/// One source's word that something may have changed.
struct WakeReason {
  WakeSource source = WakeSource::Other;
  std::string detail;  ///< a few words for people; may be empty
  Instant time;        ///< when the reactor learnt of it first
  /// When it did last: what began to be read then, or later, tells all that the source has seen.
  Instant latest = time;
};
/// Adds it, or makes it one with the reason of the same source and detail.
void add_reason(std::vector<WakeReason>& reasons, WakeReason reason);

/// All reasons since the last pass, as one: passes coalesce however often sources fire.
struct Wake {
  Instant time;                     ///< the earliest reason's
  std::vector<WakeReason> reasons;  ///< in the order they came; never empty; one for each source and detail

  [[nodiscard]] WakeSource source() const { return reasons.front().source; }
};

/// What a turn of the loop comes to, one after the other, as far as it goes.
enum class Stage : std::uint8_t {
  Observed,      ///< the node was read
  Measured,      ///< the pods were
  Reclaimed,     ///< the node gave back what no pod needs
  Decided,       ///< a pod was chosen
  Killed,        ///< its containers' processes were sent SIGKILL, or the runtime has stopped them
  FirstRelease,  ///< the first of its memory was back
  Released,      ///< its memory was back
  Cleanup,       ///< nothing was left of it, or the wait for that was over
};
/// "observed", "first_release", …
[[nodiscard]] std::string_view name(Stage stage);
/// The stage that has this name; absent: none has.
[[nodiscard]] std::optional<Stage> parse_stage(std::string_view name);
/// In the order of their names, by which events list them.
[[nodiscard]] std::span<const Stage> stages_by_name();

/// When each stage was reached, since the wake-up.
class StageTimes {
 public:
  StageTimes() = default;
  StageTimes(std::initializer_list<std::pair<Stage, Duration>> times) {
    for (const auto& [stage, time] : times) set(stage, time);
  }

  void set(Stage stage, Duration time) { times_[static_cast<std::size_t>(stage)] = time; }
  /// Absent: it was not reached.
  [[nodiscard]] std::optional<Duration> operator[](Stage stage) const {
    return times_[static_cast<std::size_t>(stage)];
  }

  friend bool operator==(const StageTimes&, const StageTimes&) = default;

 private:
  std::array<std::optional<Duration>, static_cast<std::size_t>(Stage::Cleanup) + 1> times_{};
};

/// One turn of the loop: what woke it, and how long each stage took since.
struct Turn {
  Wake wake;
  StageTimes stages{};

  /// Notes that the stage is reached.
  void reach(Stage stage, Instant now) { stages.set(stage, now - wake.time); }
};

}  // namespace evictd::core
