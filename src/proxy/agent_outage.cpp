#include "proxy/agent_outage.hpp"

#include <fmt/format.h>

#include <utility>

namespace evictd::proxy {

AgentOutage::AgentOutage(std::string consequence, std::function<void(const std::string&)> warn)
    : consequence_(std::move(consequence)), warn_(std::move(warn)) {}

void AgentOutage::undecided(std::string_view why, core::Instant now) {
  const std::lock_guard lock(mutex_);
  ++undecided_;
  if (told_ || limit_.closed_until(now)) return;
  limit_.count(now);
  told_ = true;
  warn_(fmt::format("the agent does not decide on pods ({}): {} until it does", why, consequence_));
}

void AgentOutage::decided() {
  const std::lock_guard lock(mutex_);
  if (told_) warn_(fmt::format("the agent decides on pods again; it did not on {}", undecided_));
  told_ = false;
  undecided_ = 0;
}

}  // namespace evictd::proxy
