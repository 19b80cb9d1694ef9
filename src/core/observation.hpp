#pragma once
#include <array>
#include <cstdint>
#include <optional>

#include "core/duration.hpp"
#include "core/signal.hpp"

namespace evictd::core {

/// One signal as it was read from the node.
struct Observation {
  std::int64_t available = 0;     ///< bytes, inodes or process ids; pid.available may be negative
  std::int64_t capacity = 0;      ///< the same unit; percentages are taken of it
  std::optional<Instant> time{};  ///< when it was measured; absent counts as new in every pass

  friend bool operator==(const Observation&, const Observation&) = default;
};

/// At most one observation a signal. A signal without one meets no threshold.
class Observations {
 public:
  [[nodiscard]] std::optional<Observation>& operator[](Signal signal) { return slots_[index(signal)]; }
  [[nodiscard]] const std::optional<Observation>& operator[](Signal signal) const { return slots_[index(signal)]; }

  friend bool operator==(const Observations&, const Observations&) = default;

 private:
  std::array<std::optional<Observation>, signal_capacity> slots_{};
};

}  // namespace evictd::core
