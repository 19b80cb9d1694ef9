#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/duration.hpp"
#include "core/observation.hpp"
#include "core/quantity.hpp"
#include "core/signal.hpp"

namespace evictd::core {

/// A share of the capacity. Kept in float32 as the kubelet does, so that "10%" is a hair more than a tenth there and
/// here.
struct Percentage {
  float fraction = 0;  ///< 0 to 1

  friend bool operator==(const Percentage&, const Percentage&) = default;
};

/// An absolute quantity or a share of the capacity.
struct ThresholdValue {
  std::variant<Quantity, Percentage> value;

  /// In the signal's unit. A percentage is truncated: int64(float64(capacity) · float64(fraction)).
  [[nodiscard]] std::int64_t of(std::int64_t capacity) const;
  /// "150Mi" or "10%".
  [[nodiscard]] std::string to_string() const;

  friend bool operator==(const ThresholdValue&, const ThresholdValue&) = default;
};

/// Where a threshold came from, for `evictd check`.
enum class ThresholdSource : std::uint8_t {
  Default,  ///< evictionHard is absent; with mergeDefaultEvictionSettings: it leaves the signal out
  EvictionHard,
  EvictionSoft,
  EnforceNodeAllocatable,  ///< the copy of a hard memory.available for the pods' cgroup
  Derived,                 ///< containerfs, from imagefs or nodefs
};
[[nodiscard]] std::string_view name(ThresholdSource source);

/// "Evict once less than `value` is available for `grace`." The only operator is LessThan.
struct Threshold {
  Signal signal = Signal::MemoryAvailable;
  ThresholdValue value{};
  Duration grace{};  ///< 0: hard
  std::optional<ThresholdValue>
      min_reclaim{};  ///< hysteresis: a threshold that acted is over only this much above its value
  ThresholdSource source = ThresholdSource::EvictionHard;

  [[nodiscard]] bool is_hard() const { return grace == Duration::zero(); }
  /// Copies and derived ones follow from others.
  [[nodiscard]] bool is_configured() const {
    return source != ThresholdSource::Derived && source != ThresholdSource::EnforceNodeAllocatable;
  }
  /// Same signal, value and grace period. The minimum reclaim is no part of a threshold's identity (kubelet:
  /// hasThreshold).
  [[nodiscard]] bool same_as(const Threshold& other) const {
    return signal == other.signal && value == other.value && grace == other.grace;
  }

  friend bool operator==(const Threshold&, const Threshold&) = default;
};

/// Whether the minimum reclaim is asked for on top of the threshold's value.
enum class Enforce : bool { value_only, min_reclaim };

/// How much must be available for the threshold not to be met, in the signal's unit; saturates.
[[nodiscard]] std::int64_t required(const Threshold& threshold, std::int64_t capacity, Enforce enforce);

/// What is required exceeds what is available. A signal without an observation is never met. (kubelet:
/// thresholdsMet)
[[nodiscard]] bool is_met(const Threshold& threshold, const Observations& observations, Enforce enforce);

/// All that are met, in their order.
[[nodiscard]] std::vector<Threshold> met(std::span<const Threshold> thresholds, const Observations& observations,
                                         Enforce enforce);

/// The order in which thresholds act: signals as in `Signal`, hard before soft within one (kubelet-spec section 4).
void sort_by_precedence(std::vector<Threshold>& thresholds);

/// "memory.available<150Mi", where soft "memory.available<150Mi for 2m0s", for logs and errors.
[[nodiscard]] std::string to_string(const Threshold& threshold);

}  // namespace evictd::core
