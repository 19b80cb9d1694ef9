#pragma once
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/duration.hpp"
#include "core/pod.hpp"

namespace evictd::evict {

/// How an answer in time is told, and one that did not come.
inline constexpr auto outcome_done = "done";
inline constexpr auto outcome_late = "no answer in time";

/// What one of those that are asked before a kill made of it.
struct HookAnswer {
  std::string hook;       ///< the socket's name, or who called PreKill
  std::string outcome;    ///< one of the two above, or what went wrong; printable
  core::Duration took{};  ///< since it was asked; zero: it has not answered
};

/// Why a pod is about to be killed, for whoever is asked before it.
struct KillIntent {
  core::PodPtr pod;
  std::string cgroup;    ///< its own, below the root of the hierarchy: a pod without one is not held
  std::uint64_t id = 0;  ///< of its EVICTION_INTENDED event; 0: unknown
  std::string message;   ///< one line: what is short, and why this pod
  core::Instant until;   ///< nobody is waited for any longer
  /// One of each that is asked, from then on: until it has answered, it has not in time. For who may end the wait.
  std::shared_ptr<std::vector<HookAnswer>> answers = std::make_shared<std::vector<HookAnswer>>();
};

/// Asks others before a pod is killed: they may save what the pod holds, or tell somebody. What they answer changes
/// nothing about the kill. On the reactor.
class KillHooks {
 public:
  KillHooks() = default;
  KillHooks(const KillHooks&) = delete;
  KillHooks& operator=(const KillHooks&) = delete;
  virtual ~KillHooks() = default;

  /// Whether there is anybody to ask now. Where not, nothing holds up the kill. No more than a few microseconds.
  [[nodiscard]] virtual bool has_any() const = 0;
  /// Asks all of them side by side, and ends when each has answered or failed, at `intent.until` at the latest. One
  /// that hangs, lies or dies costs nothing beyond that. May be cancelled (terminal cancellation) at any time.
  [[nodiscard]] virtual boost::asio::awaitable<void> ask(KillIntent intent) = 0;
};

}  // namespace evictd::evict
