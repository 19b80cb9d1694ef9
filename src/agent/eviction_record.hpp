#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/action.hpp"
#include "core/duration.hpp"
#include "core/eviction_message.hpp"
#include "core/pod.hpp"
#include "core/rank.hpp"
#include "pods/runtime_pod.hpp"
#include "wake/wakes.hpp"

namespace evictd::agent {

/// One turn of the loop: what woke it, and how long each stage took since.
struct Turn {
  wake::Wake wake;
  std::map<std::string, core::Duration, std::less<>> stages{};

  /// Notes that the stage is reached now.
  void mark(std::string_view stage);
};

/// An eviction under way, as its later events refer to it.
struct EvictionRecord {
  std::uint64_t id = 0;  ///< the number of its EVICTION_INTENDED event
  core::PodPtr pod;
  core::EvictionCause cause;
  Turn turn;
  std::optional<core::Acted> acted{};
  std::int64_t expected_release = 0;       ///< in the signal's unit
  core::Duration grace_period{};           ///< zero: killed at once
  pods::RuntimePodPtr runtime{};           ///< what is stopped; null in a dry run
  core::Instant begun{};                   ///< when the pod was told to end
  bool killed = false;                     ///< its containers do not run any more
  bool released = false;                   ///< its memory is back
  std::int64_t held = 0;                   ///< bytes of memory, before the kill; 0: unknown
  core::EvictionMessage message{};         ///< as the pod's status says it
  std::vector<core::RankedPod> ranking{};  ///< the first of those that were looked at
};

}  // namespace evictd::agent
