#pragma once
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "core/duration.hpp"
#include "core/rate_limit.hpp"

namespace evictd::proxy {

/// Tells once of each time in which the agent does not decide, and of its end, however many pods are started meanwhile
/// and however often the agent comes and goes. Any thread.
class AgentOutage {
 public:
  /// `consequence` ends the line: "pods start without its leave". `warn` is called with the lock held.
  AgentOutage(std::string consequence, std::function<void(const std::string&)> warn);

  void undecided(std::string_view why, core::Instant now);
  void decided();

 private:
  std::string consequence_;
  std::function<void(const std::string&)> warn_;
  std::mutex mutex_;
  core::RateLimit limit_{1};  ///< an agent that fails every other time is worth a line a minute, not one a pod
  std::uint64_t undecided_ = 0;
  bool told_ = false;
};

}  // namespace evictd::proxy
