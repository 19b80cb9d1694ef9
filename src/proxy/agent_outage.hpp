#pragma once
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/duration.hpp"
#include "core/rate_limit.hpp"

namespace evictd::proxy {

/// What the log is told of times in which the agent does not decide: once of each, and of its end, however many pods
/// are started meanwhile and however often the agent comes and goes. Any thread.
class AgentOutage {
 public:
  /// `consequence` ends the line: "pods start without its leave".
  explicit AgentOutage(std::string consequence) : consequence_(std::move(consequence)) {}

  /// The line for the log, where there is something to say.
  [[nodiscard]] std::optional<std::string> undecided(std::string_view why, core::Instant now);
  [[nodiscard]] std::optional<std::string> decided();

 private:
  std::string consequence_;
  std::mutex mutex_;
  core::RateLimit limit_{1};  ///< an agent that fails every other time is worth a line a minute, not one a pod
  std::uint64_t undecided_ = 0;
  bool told_ = false;
};

}  // namespace evictd::proxy
