#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/filesystem_layout.hpp"
#include "core/threshold.hpp"

namespace evictd::core {

/// The eviction part of a KubeletConfiguration, as the operator wrote it.
struct EvictionSettings {
  using BySignal = std::map<std::string, std::string, std::less<>>;

  std::optional<BySignal> hard;  ///< evictionHard; absent: the defaults, empty: none
  BySignal soft;                 ///< evictionSoft
  BySignal soft_grace_period;    ///< evictionSoftGracePeriod
  BySignal minimum_reclaim;      ///< evictionMinimumReclaim
  bool merge_defaults = false;   ///< mergeDefaultEvictionSettings: signals left out of evictionHard keep their default
  std::int32_t max_pod_grace_period_seconds = 0;              ///< evictionMaxPodGracePeriod; negative: as 0
  Duration pressure_transition_period{};                      ///< evictionPressureTransitionPeriod; 0: 5 min
  std::vector<std::string> enforce_node_allocatable{"pods"};  ///< enforceNodeAllocatable
  bool local_storage_capacity_isolation = true;               ///< localStorageCapacityIsolation
};

/// What the state machine works by: settings that were checked.
struct EvictionPolicy {
  std::vector<Threshold> thresholds;
  Duration max_pod_grace_period{};  ///< for soft evictions; what is below 1 s, be it negative, gives 1 s
  Duration pressure_transition_period = std::chrono::minutes(5);
  bool local_storage_isolation = true;

  friend bool operator==(const EvictionPolicy&, const EvictionPolicy&) = default;
};

/// The kubelet's defaults for an absent evictionHard (1.35: with imagefs.inodesFree).
[[nodiscard]] const EvictionSettings::BySignal& default_hard_thresholds();

/// Checks every entry and builds the policy; the first error names the key and the value
/// (`evictionHard: memory.available: "5x" is not a quantity`). Rules and their order: kubelet-spec section 2.
[[nodiscard]] Result<EvictionPolicy> make_policy(const EvictionSettings& settings);

/// Replaces the containerfs thresholds by copies of those of the file system that holds the writable layers, as the
/// kubelet does after its first pass (kubelet-spec section 2).
[[nodiscard]] std::vector<Threshold> with_derived_containerfs(std::vector<Threshold> thresholds,
                                                              FilesystemLayout layout);

/// What a kubelet's first pass goes by, during which it derives them: the containerfs thresholds that were given have
/// the derived values by then, and go where there is none to derive; those that were not given are not there yet.
/// (kubelet 1.36: UpdateContainerFsThresholds, which writes into the list that the pass has in hand)
[[nodiscard]] std::vector<Threshold> with_given_containerfs_replaced(const std::vector<Threshold>& given,
                                                                     FilesystemLayout layout);

}  // namespace evictd::core
