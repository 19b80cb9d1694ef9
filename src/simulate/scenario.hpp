#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "admission/chain.hpp"
#include "admission/handler.hpp"
#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/eviction_settings.hpp"
#include "core/held_time.hpp"
#include "core/image_ages.hpp"
#include "core/observation.hpp"
#include "core/pod.hpp"
#include "core/usage.hpp"
#include "simulate/scenario_node.hpp"

namespace evictd::simulate {

/// One pass at a given time, and the pods to test admission for after it.
struct ScenarioStep {
  std::string at;  ///< as the scenario writes it
  core::Instant time{};
  core::PodList added{};
  std::vector<std::string> removed{};  ///< keys of pods
  /// The node's images from this step on, by their names. Absent: those of the step before that are still there; if no
  /// step has told any, the node removes images without a word which.
  std::optional<std::vector<core::SeenImage>> images{};
  core::Observations observed{};
  core::Observations after_reclaim{};                          ///< what the node says once node-level reclaim has run
  std::map<std::string, core::PodUsage, std::less<>> usage{};  ///< by the pods' keys; absent: no stats
  core::Observations after_trim{};                             ///< the same, once what can be trimmed has been
  std::set<std::string, std::less<>> answered{};               ///< keys of the pods whose hooks have answered
  std::set<std::string, std::less<>> idle{};  ///< keys of the pods that have not worked since the step before
  std::map<std::string, int, std::less<>> oom_score_adj{};  ///< that pods' processes have chosen, by the pods' keys
  std::optional<core::PodList> admit{};
  admission::Operation operation = admission::Operation::Add;  ///< what is asked about the pods of `admit`
};

/// How pods are held before they are killed.
struct HoldSettings {
  core::HeldTime time{};
  std::int64_t headroom = 32 << 20;  ///< bytes
};

/// What evictd does that no kubelet does. Without it a scenario tells what a kubelet would do.
struct OwnSettings {
  bool in_flight_reclaim = false;
  core::Duration back_off{};
  HoldSettings holds{};
  bool trims = false;
  bool steers_oom = false;
  bool explains = false;
};

/// What `evictd simulate` replays, checked and with every default filled in.
struct Scenario {
  core::EvictionPolicy policy;
  OwnSettings own{};
  core::Duration minimum_image_age{};
  admission::ChainSettings admission{};  ///< of which a chain can be made
  std::int64_t max_pods = 110;
  ScenarioNode node{};
  core::PodList pods{};
  std::vector<ScenarioStep> steps{};
};

/// Reads a scenario in YAML. The error names file, line, step and key: "a.yaml:12: steps[1].usage.a.memory: …".
[[nodiscard]] Result<Scenario> parse_scenario(std::string_view text, std::string_view origin);

}  // namespace evictd::simulate
