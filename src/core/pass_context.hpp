#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/action.hpp"
#include "core/back_off.hpp"
#include "core/duration.hpp"
#include "core/eviction_order.hpp"
#include "core/eviction_settings.hpp"
#include "core/filesystem_layout.hpp"
#include "core/in_flight.hpp"
#include "core/observation.hpp"
#include "core/passes_under_way.hpp"
#include "core/pod.hpp"
#include "core/pressure.hpp"
#include "core/rate_limit.hpp"

namespace evictd::core {

/// What passes go by, and what one leaves for the next. The Synchronizer owns it, and changes it between passes as it
/// is told; a Pass works on it.
struct PassContext {
  EvictionPolicy policy;
  PressureTracker pressure{};
  InFlight in_flight{};
  BackOff back_off;
  RateLimit rate_limit;
  std::size_t evictions_in_first_minute = 0;  ///< the cap of the minute that is still to begin; 0: none

  FilesystemLayout layout{};
  bool containerfs_derived = false;  ///< containerfs has thresholds by that layout

  PodListPtr pods = std::make_shared<const PodList>();  ///< never null
  std::set<std::string, std::less<>> unlisted{};        ///< of those, by uid
  PodListPtr without_victim{};  ///< the pods of which the last pass found none that may go; null: it had no need to

  PassesUnderWay passes{};
  std::optional<Instant> limited_until{};  ///< by the rate limit, in the last pass
  std::optional<Instant> wake_at{};        ///< as asked for last
  std::vector<Level> armed{};              ///< as asked for last

  /// Called with whatever comes first after the start.
  void begin_first_minute(Instant now);
  /// To be called behind the first pass, which still works with what was configured (kubelet-spec section 2).
  void derive_containerfs();
  [[nodiscard]] EvictionOrder order() const;

  /// The time at which something changes without any event, if it is another than before.
  [[nodiscard]] std::optional<WakeAt> wake_for_change(Instant now);
  /// A node that is short of what no pod could go for has another pass once there are other pods, or more is known of
  /// them, because nothing else may begin one for minutes.
  [[nodiscard]] std::optional<WakeAt> wake_for_new_pods(Instant now);
  /// The levels of all thresholds that have an observation, if they are others than before.
  [[nodiscard]] std::optional<ArmLevels> levels_to_arm(const Observations& observations);
};

}  // namespace evictd::core
