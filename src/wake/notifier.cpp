#include "wake/notifier.hpp"

#include <fmt/format.h>

#include <chrono>
#include <utility>

namespace evictd::wake {

void Notifier::wake(std::string detail) {
  ++count_;
  last_ = std::chrono::steady_clock::now();
  wakes_.notify({source_, std::move(detail), *last_});
}

void Notifier::failed(const Error& error) {
  if (failure_ == error.message) return;
  failure_ = error.message;
  wakes_.degraded(std::string(core::name(source_)), error);
}

void Notifier::re_registered(std::string_view why) {
  ++re_registrations_;
  recovered(fmt::format("registered with the kernel anew: {}", why));
}

SourceStatus Notifier::status(std::string name, std::string state) const {
  return {.name = std::move(name),
          .state = failure_.empty() ? std::move(state) : "failed: " + failure_,
          .wakes = count_,
          .last_wake = last_,
          .rearms = rearms_,
          .re_registrations = re_registrations_,
          .missed = missed_};
}

}  // namespace evictd::wake
