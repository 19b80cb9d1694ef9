#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "testbed/agent.hpp"

namespace bench {

inline constexpr std::int64_t mebi = 1 << 20;

/// Who acts when memory runs short.
enum class Variant : std::uint8_t {
  fast,        ///< evictd, kill.mode fast: it kills the processes itself, then tells the runtime
  cri,         ///< evictd, kill.mode cri: the runtime kills
  timer,       ///< evictd, kill.mode fast, but woken by nothing except its timer
  sampler,     ///< evictd, kill.mode fast, notifier.v2 sampler: cgroup v2 alone, where "fast" has a tripwire
  fence,       ///< the same with notifier.v2 fence
  hook,        ///< evictd, kill.mode fast, and a hook before each kill that answers at once
  hook_hangs,  ///< the same with a hook that never answers and has 100 ms
  floor,       ///< the loop in floor.hpp
};

/// "evictd fast", …, "floor"
[[nodiscard]] std::string name(Variant variant);
/// By their short names: "fast", …, "hook-hangs", "floor". Fails where one of them is cgroup v2's, and this machine has
/// v1.
[[nodiscard]] std::vector<Variant> variants_named(const std::vector<std::string>& names);

/// The configuration of evictd for the variant, with the thresholds given as KubeletConfiguration.
[[nodiscard]] testbed::Agent::Options agent_options(Variant variant, std::string thresholds);

}  // namespace bench
