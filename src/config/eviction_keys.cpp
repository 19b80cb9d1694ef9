#include "config/eviction_keys.hpp"

#include <chrono>  // IWYU pragma: keep: its literals
#include <cstdint>

#include "config/agent_configuration.hpp"
#include "config/key_kinds.hpp"
#include "config/key_of.hpp"

namespace evictd::config {

std::vector<AgentKey> eviction_keys() {
  using namespace std::chrono_literals;
  using namespace kinds;
  using A = AgentConfiguration;
  using S = EvictionTuning;
  return {
      key<&A::eviction, &S::cleanup_timeout>(
          "eviction.cleanupTimeout", DurationBetween{1s, 10min},
          "How long an evicted pod's cleanup is waited for before it counts as failed."),
      key<&A::eviction, &S::stop_timeout>(
          "eviction.stopTimeout", DurationBetween{100ms, 1min},
          "How long after its grace period a stop call may take before the processes are killed without the runtime, "
          "and "
          "how long after the containers the sandbox may live before its own process is."),
      key<&A::eviction, &S::back_off>("eviction.backOff", DurationBetween{0s, 1h},
                                      "For how long after an eviction pods of the same controller go behind those "
                                      "that the ranking puts equal; 0s: they do not."),
      key<&A::eviction, &S::max_per_minute>("eviction.maxPerMinute", CountBetween{0, 1000},
                                            "How many pods may be evicted in a minute; 0: as many as it takes."),
      key<&A::eviction, &S::remove_volumes>("eviction.removeVolumes", in_kubelets_place(),
                                            "Whether an evicted pod's emptyDirs below node.kubeletRoot are removed "
                                            "once it is gone; auto: where no kubelet "
                                            "does that."),
      key<&A::eviction, &S::trim>(
          "eviction.trim", OneOf<Trim>{{{"off", Trim::Off}, {"cache", Trim::Cache}, {"all", Trim::All}}},
          "What is tried before a pod goes for memory, while a soft threshold's grace period runs and near a hard one: "
          "cache, file cache of pods over their request is taken; all, and programs that listen on "
          "pressure/pressure.sock in runtimeDirectory are told to give back what they do not need."),
  };
}

std::vector<AgentKey> brake_keys() {
  using namespace std::chrono_literals;
  using namespace kinds;
  using A = AgentConfiguration;
  using S = BrakeSettings;
  constexpr std::int64_t mebi = 1 << 20;
  return {
      key<&A::brake, &S::time>("eviction.brake.time", DurationBetween{0s, 5min},
                               "How long a pod that would be killed at once because of a hard threshold on memory may "
                               "take to end by itself, held at what it uses and a headroom; 0s: it is killed at once."),
      key<&A::brake, &S::headroom>("eviction.brake.headroom", BytesBetween{mebi, 1024 * mebi},
                                   "By how much such a pod may still grow: what its end takes, with the files that it "
                                   "writes."),
      key<&A::brake, &S::floor>("eviction.brake.floor", PercentBetween{0, 100},
                                "Such a pod is killed when what is available falls below this part of the threshold."),
  };
}

std::vector<AgentKey> hook_keys() {
  using namespace std::chrono_literals;
  using namespace kinds;
  using A = AgentConfiguration;
  using S = HookSettings;
  return {
      key<&A::hooks, &S::time>("eviction.hooks.time", DurationBetween{0s, 1min},
                               "How long the kill of a pod that goes at once because memory is short waits for those "
                               "that are asked before it, all of them together; 0s: nobody is asked."),
      key<&A::hooks, &S::directory>("eviction.hooks.directory", optional_path,
                                    "The directory with the Varlink sockets (io.systemd.oom.Prekill) of those that are "
                                    "asked; \"\": none, only those that call PreKill."),
  };
}

}  // namespace evictd::config
