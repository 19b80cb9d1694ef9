#pragma once
#include <cstdint>

#include "core/duration.hpp"

namespace evictd::core {

/// The time of a pod that is held because memory is short, before it is killed (eviction.brake, eviction.hooks).
struct HeldTime {
  Duration brake{};    ///< for its own end; zero: none, and it is frozen instead of braked
  Duration hooks{};    ///< for those that are asked before a kill; zero: nobody is
  double floor = 0.5;  ///< of the threshold's value, 0 to 1: where less is available nothing is waited for

  /// Bytes. `required`: that the threshold wants available.
  [[nodiscard]] std::int64_t floor_of(std::int64_t required) const {
    return floor >= 1 ? required : static_cast<std::int64_t>(static_cast<double>(required) * floor);
  }
  [[nodiscard]] bool brakes() const { return brake > Duration::zero(); }
  [[nodiscard]] bool asks() const { return hooks > Duration::zero(); }
  /// Whether anybody is helped by some time, and there is any. `has_hooks`: there is somebody to be asked.
  [[nodiscard]] bool is_there(std::int64_t available, std::int64_t required, bool has_hooks) const {
    return available >= floor_of(required) && (brakes() || (asks() && has_hooks));
  }
  /// Both times begin when the pod is held. `unanswered`: somebody who was asked has not answered.
  [[nodiscard]] bool waits_for_hooks(Instant held, Instant now, bool unanswered) const {
    return unanswered && now < held + hooks;
  }
  [[nodiscard]] bool is_over(Instant held, Instant now, bool unanswered) const {
    return !waits_for_hooks(held, now, unanswered) && now >= held + brake;
  }
};

}  // namespace evictd::core
