#include "web/client_failure.hpp"

#include <chrono>

#include "core/duration.hpp"
#include "os/log.hpp"

namespace evictd::web {

void warn_of_client_failure(const std::string& reason) {
  static core::Instant next{};
  const auto now = std::chrono::steady_clock::now();
  if (now < next) return;
  next = now + std::chrono::minutes(1);
  os::log_warning("http: a client's connection was given up: {}", reason);
}

}  // namespace evictd::web
