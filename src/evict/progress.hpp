#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/duration.hpp"
#include "core/error.hpp"
#include "evict/kill_hooks.hpp"

namespace evictd::evict {

/// The containers do not run any more, or will not once their processes see the signal that they were sent.
struct ContainersKilled {
  std::vector<std::string> containers;  ///< names
  std::string method;                   ///< "cgroup.kill", "SIGKILL", or "StopContainer" where the runtime did it
  core::Instant time;                   ///< of the first signal, or of the runtime's answer
  std::int64_t held = 0;                ///< bytes of memory that the pod held before
};

/// The pod's memory has come back to the node.
struct MemoryReleased {
  std::int64_t bytes = 0;                ///< how much less the pod's cgroup holds than before the kill
  std::optional<core::Instant> first{};  ///< when the first 32 MiB (or half of it, where it held less) were back
  core::Instant time;
};

/// A call to the runtime failed; the eviction goes on without it.
struct CallFailed {
  std::string call;  ///< "kill", or the runtime's: "StopContainer"; metrics/event_counters.cpp has to know each
  Error error;
};

/// The runtime took a call and has not answered in time. It may still carry it out; the eviction goes on without it.
struct CallDelayed {
  std::string call;
  Error error;
};

/// The pod is gone: no container runs, its sandbox is not ready, and no process is in its cgroup. Whatever waits for
/// what it held need not wait longer.
struct PodGone {
  core::Instant time;
};

/// Nothing is left of the pod, its own cgroup and its emptyDirs included, as far as anybody removes them.
struct CleanupEnded {
  bool timed_out = false;
  core::Duration duration{};  ///< since the eviction began
  std::string remaining;      ///< what was still there when the time was over
  core::Instant time;
};

/// A pod that would be killed at once is held: by the brake, so that it can end by itself, or frozen while others are
/// asked. Or that is over.
struct Braked {
  enum class Phase : std::uint8_t {
    held,    ///< it may end by itself now, unless it is frozen
    ended,   ///< it did
    killed,  ///< it was
  };
  Phase phase = Phase::held;
  std::int64_t limit = 0;     ///< bytes that it may not exceed
  std::int64_t usage = 0;     ///< bytes that it held when the brake was set
  core::Duration given{};     ///< how long it may take at most
  core::Duration duration{};  ///< how long it took; of one that is held: 0
  std::string why{};          ///< it was killed; of one that used up its time: ""
  bool frozen = false;        ///< it has no brake, and so neither a limit nor time of its own
};

/// Those that are asked before a kill have answered, or did not in time.
struct HooksAsked {
  std::vector<HookAnswer> answers;
};

/// What became of time that a pod was given although it was to be killed at once.
enum class GivenTime : std::uint8_t { none, now, over };
/// No pod is given more.
inline constexpr core::Duration longest_given_time = std::chrono::minutes(5);

/// How far an eviction has come.
struct Reached {
  core::Instant begun{};  ///< when the pod was told to end
  bool killed = false;    ///< ContainersKilled was reported: its containers do not run any more
  bool released = false;  ///< MemoryReleased was reported: its memory is back
  bool gone = false;      ///< PodGone was reported: at most its cgroup and its emptyDirs are left
  std::int64_t held = 0;  ///< bytes of memory that the pod held before the kill; 0: unknown
  bool resumed = false;   ///< an evictd before this one began it: its preStop hooks may have run
  GivenTime given_time = GivenTime::none;

  friend bool operator==(const Reached&, const Reached&) = default;
};

using Progress =
    std::variant<ContainersKilled, MemoryReleased, CallFailed, CallDelayed, PodGone, CleanupEnded, Braked, HooksAsked>;
/// "killed", "released", "failed", "delayed", "gone", "cleaned", "braked", "asked"
[[nodiscard]] constexpr std::string_view name(const Progress& progress) {
  constexpr std::array<std::string_view, 8> names{"killed", "released", "failed", "delayed",
                                                  "gone",   "cleaned",  "braked", "asked"};
  return names[progress.index()];
}
using Report = std::function<void(const Progress&)>;

}  // namespace evictd::evict
