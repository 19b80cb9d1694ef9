#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "testbed/agent.hpp"

namespace bench {

inline constexpr std::int64_t mebi = 1 << 20;

/// Who acts when memory runs short.
enum class Variant : std::uint8_t {
  fast,   ///< evictd, kill.mode fast: it kills the processes itself, then tells the runtime
  cri,    ///< evictd, kill.mode cri: the runtime kills
  timer,  ///< evictd, kill.mode fast, but woken by nothing except its timer
  floor,  ///< the loop in floor.hpp
};

/// "evictd fast", …, "floor"
[[nodiscard]] std::string_view name(Variant variant);

/// The configuration of evictd for the variant, with the thresholds given as KubeletConfiguration.
[[nodiscard]] testbed::Agent::Options agent_options(Variant variant, std::string thresholds);

}  // namespace bench
