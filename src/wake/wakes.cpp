#include "wake/wakes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "async/sleep.hpp"

namespace asio = boost::asio;

namespace evictd::wake {

Wakes::Wakes(const asio::any_io_executor& reactor) : pending_signal_{reactor, asio::steady_timer::time_point::max()} {}

void Wakes::notify(Reason reason) {
  core::add_reason(pending_, std::move(reason));
  pending_signal_.cancel();
}

asio::awaitable<Wake> Wakes::next() {
  while (pending_.empty()) co_await async::wait(pending_signal_);
  Wake wake{.time = std::ranges::min(pending_, {}, &Reason::time).time, .reasons = std::move(pending_)};
  pending_.clear();
  co_return wake;
}

void Wakes::degraded(const std::string& source, const Error& error) {
  if (listener_ != nullptr)
    listener_->source_degraded(source, error);
  else
    unheard_.emplace_back(source, error);
}

void Wakes::recovered(const std::string& source, const std::string& what) const {
  if (listener_ != nullptr) listener_->source_recovered(source, what);
}

void Wakes::listen(SourceListener& listener) {
  listener_ = &listener;
  for (const auto& [source, error] : std::exchange(unheard_, {})) listener.source_degraded(source, error);
}

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
