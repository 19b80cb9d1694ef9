#include "proxy/agent_outage.hpp"

#include <fmt/format.h>

#include <utility>

namespace evictd::proxy {

std::optional<std::string> AgentOutage::undecided(std::string_view why, core::Instant now) {
  const std::lock_guard lock(mutex_);
  ++undecided_;
  if (told_ || limit_.closed_until(now)) return std::nullopt;
  limit_.count(now);
  told_ = true;
  return fmt::format("the agent does not decide on pods ({}): {} until it does", why, consequence_);
}

std::optional<std::string> AgentOutage::decided() {
  const std::lock_guard lock(mutex_);
  const auto before = std::exchange(undecided_, 0);
  if (!std::exchange(told_, false)) return std::nullopt;
  return fmt::format("the agent decides on pods again; it did not on {}", before);
}

}  // namespace evictd::proxy
