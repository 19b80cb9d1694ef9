#include "agent/runtime_events.hpp"

#include <api.pb.h>

#include <algorithm>
#include <utility>

#include "async/sleep.hpp"
#include "async/spawn.hpp"
#include "async/turns.hpp"
#include "os/log.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::agent {
namespace {

constexpr core::Duration first_delay = 100ms;
constexpr core::Duration longest_delay = 30s;
/// A stream that lasted for so long was a good one.
constexpr core::Duration lasting = 10s;
// Reading one takes some 20 µs. A pod's start has four.
constexpr int most_in_window = 100;
constexpr core::Duration reading_window = 100ms;

}  // namespace

RuntimeEvents::RuntimeEvents(asio::any_io_executor reactor, cri::Client& runtime, const Clock& clock,
                             bool kubelet_listens)
    : reactor_{reactor},
      runtime_{runtime},
      clock_{clock},
      kubelet_listens_{kubelet_listens},
      next_try_{reactor},
      probation_{std::move(reactor)},
      delay_{first_delay} {}

void RuntimeEvents::start(RuntimeEventListener& listener) {
  async::spawn(reactor_, listen_again_and_again(listener), "listening to the runtime");
}

void RuntimeEvents::stop() {
  stopping_ = true;
  next_try_.cancel();
  probation_.cancel();
  if (stream_ != nullptr) stream_->cancel();
}

void RuntimeEvents::appeared(const std::string& runtime) {
  is_offered_ = !(kubelet_listens_ && runtime.starts_with("containerd 1."));
  if (!is_offered_)
    os::log_info("{} tells each event to one listener only, which is the kubelet (its feature EventedPLEG)", runtime);
  delay_ = first_delay;
  next_try_.cancel();
}

void RuntimeEvents::reconnect() {
  if (!heard_) return;
  heard_ = false;
  os::log_warning("{}: a pod has come of which no event told; listening anew", runtime_.endpoint());
  if (stream_ != nullptr) stream_->cancel();
}

asio::awaitable<void> RuntimeEvents::listen_again_and_again(RuntimeEventListener& listener) {
  while (!stopping_) {
    if (is_offered_ && runtime_.connected()) co_await listen(listener);
    if (stopping_) co_return;
    next_try_.expires_after(std::exchange(delay_, std::min(delay_ * 2, longest_delay)));
    // Without a runtime, or one that offers it, the next that appears ends the wait.
    if (!is_offered_ || !runtime_.connected()) next_try_.expires_at(core::Instant::max());
    co_await async::wait(next_try_);
  }
}

asio::awaitable<void> RuntimeEvents::listen(RuntimeEventListener& listener) {
  stream_ = runtime_.container_events();
  opened_ = clock_.now();
  probation_.expires_after(probation);
  async::spawn(reactor_, end_probation(listener), "waiting for the runtime's events");
  while (!stopping_) {
    const auto event = co_await stream_->next();
    if (stopping_) co_return;
    if (!event) {
      if (ended(event.error())) listener.on_runtime_event();
      break;
    }
    async::Turns::doing("an event of the runtime's");
    hear();
    listener.on_runtime_event();
    co_await hold_back();
  }
}

/// What is not read waits in the connection, and behind it in the runtime.
asio::awaitable<void> RuntimeEvents::hold_back() {
  if (clock_.now() - window_ >= reading_window) {
    window_ = clock_.now();
    read_ = 0;
  }
  if (++read_ < most_in_window) co_return;
  next_try_.expires_after(reading_window);
  co_await async::wait(next_try_);
  read_ = 0;
}

/// What a runtime that refuses says at once. What happened before it listened, nobody told.
asio::awaitable<void> RuntimeEvents::end_probation(RuntimeEventListener& listener) {
  const bool is_over = co_await async::wait(probation_);
  if (!is_over || heard_ || stopping_) co_return;
  hear();
  listener.on_runtime_event();
}

void RuntimeEvents::hear() {
  if (std::exchange(heard_, true)) return;
  probation_.cancel();
  os::log_info("{} tells of its pods' starts and ends", runtime_.endpoint());
}

bool RuntimeEvents::ended(const cri::CallError& error) {
  const bool was_heard = std::exchange(heard_, false);
  probation_.cancel();
  stream_.reset();
  is_offered_ = error.failure != cri::Failure::Unimplemented;
  if (!is_offered_) {
    os::log_info("the runtime does not tell of its pods' starts and ends; they are listed by the clock");
    return false;
  }
  if (error_ != error.error.message)
    os::log_warning("{}; until it is heard again, pods are listed by the clock", error.error.message);
  error_ = error.error.message;
  if (clock_.now() - opened_ >= lasting) delay_ = first_delay;
  return was_heard;
}

}  // namespace evictd::agent
