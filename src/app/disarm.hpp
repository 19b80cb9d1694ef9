#pragma once
#include <string>

#include "config/agent_configuration.hpp"
#include "core/error.hpp"

namespace evictd::app {

struct Disarmed {
  /// What was found and done, in a line. The error is that of the cgroup, with what was done all the same.
  Result<std::string> outcome;
  bool is_guarded = false;  ///< an evictd guards the node: nothing was done, and the error says who that is
};

/// Lets go of pods that an evictd held (node/hold_notes.hpp), lifts a fence or tripwire (notifier.v2) that an evictd
/// left at the pods' cgroup, gives processes back the oom_score_adj that an evictd raised (protection.steerOom), and
/// says what it found and did; it calls both a fence. None is a success too, and a memory.high that evictd did not set
/// stays. Where node.podsCgroup is "auto" it looks at both kinds of pods' cgroup. Waits for no runtime and no kubelet.
///
/// Not beside an evictd that runs, and none starts meanwhile: what that has set and noted is its own, and it would not
/// write the notes a second time by which somebody undoes it all should it be killed.
[[nodiscard]] Disarmed disarm(const config::AgentConfiguration& settings);

/// Whether an evictd noted that there may be something to put back.
[[nodiscard]] bool is_something_left(const config::AgentConfiguration& settings);

}  // namespace evictd::app
