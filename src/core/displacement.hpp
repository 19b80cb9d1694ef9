#pragma once
#include <cstdint>
#include <string_view>

namespace evictd::core {

/// Why a pod has to go though the node is short of nothing.
enum class Displacement : std::uint8_t {
  Preemption,    ///< a critical pod needs what it requested
  NodeShutdown,  ///< the machine goes down
};

/// "preemption", "shutdown": what stands in the place of a signal.
[[nodiscard]] std::string_view name(Displacement displacement);

}  // namespace evictd::core
