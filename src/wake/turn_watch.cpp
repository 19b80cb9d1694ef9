#include "wake/turn_watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <stop_token>
#include <string>
#include <utility>

#include "async/thread_name.hpp"
#include "core/duration.hpp"
#include "os/log.hpp"
#include "wake/wakes.hpp"

namespace evictd::wake {
namespace {

core::Duration in_milliseconds(core::Duration duration) {
  return std::chrono::ceil<std::chrono::milliseconds>(duration);
}

std::string text(const async::Turn& turn) {
  return fmt::format("a turn of the loop ({}) took {}, {} of it on a processor", turn.doing,
                     core::to_string(in_milliseconds(turn.end - turn.begin)),
                     core::to_string(in_milliseconds(turn.on_processor)));
}

}  // namespace

TurnWatch::TurnWatch(boost::asio::any_io_executor reactor, Wakes& wakes, Hangs hangs, Options options)
    : reactor_{std::move(reactor)},
      notifier_{wakes, core::WakeSource::Turns},
      options_{options},
      turns_{options.bound},
      hangs_{std::move(hangs)},
      self_{std::make_shared<TurnWatch*>(this)},
      thread_{[this](const std::stop_token& stop) {
        async::name_this_thread("turns");
        for (auto due = std::chrono::steady_clock::now();;) {
          due += options_.look;
          turns_.wait_until(due, stop);
          if (stop.stop_requested()) return;
          const auto time = std::chrono::steady_clock::now();
          auto found = look(due, time);
          due = std::chrono::steady_clock::now();  // to wait for a log is not to be late
          if (found.turns.empty() && found.standstill == core::Duration::zero()) continue;
          boost::asio::post(reactor_, [self = self_, found = std::move(found)] {
            if (*self != nullptr) (*self)->report(found);
          });
        }
      }} {}

TurnWatch::~TurnWatch() { *self_ = nullptr; }

/// On the thread, as the next.
TurnWatch::Found TurnWatch::look(core::Instant due, core::Instant time) {
  Found found;
  if (time - due > options_.bound) {
    found.standstill = time - due;
    stood_from_ = due;
    stood_until_ = time;
  }
  found.turns = turns_.take();
  std::erase_if(found.turns, [&](const async::Turn& turn) {
    const bool stood = turn.begin < stood_until_ && turn.end > stood_from_;
    return stood && turn.on_processor <= options_.bound;
  });
  if (found.standstill == core::Duration::zero()) tell_of_turn_under_way(time);
  return found;
}

void TurnWatch::tell_of_turn_under_way(core::Instant time) {
  const auto turn = turns_.under_way();
  if (!turn || turn->begin == told_ || time - turn->begin < options_.stuck) return;
  told_ = turn->begin;
  if (hangs_) hangs_();  // before anything is said of it
  os::log_error("turns: a turn of the loop ({}) has not ended after {}: nothing else is seen meanwhile", turn->doing,
                core::to_string(in_milliseconds(time - turn->begin)));
}

void TurnWatch::report(const Found& found) {
  for (const auto& turn : found.turns) {
    ++lateness_.long_turns;
    lateness_.longest_turn = std::max(lateness_.longest_turn, turn.end - turn.begin);
    say(text(turn), may_say_turn_);
  }
  if (found.standstill > core::Duration::zero()) {
    ++lateness_.standstills;
    lateness_.longest_standstill = std::max(lateness_.longest_standstill, found.standstill);
    say(fmt::format("evictd stood still for {}: it was stopped or frozen, or had no processor",
                    core::to_string(in_milliseconds(found.standstill))),
        may_say_standstill_);
  }
  notifier_.wake("the loop was late");
}

void TurnWatch::say(const std::string& what, core::Instant& again) {
  const auto now = std::chrono::steady_clock::now();
  if (now < again) return;
  again = now + options_.say;
  notifier_.recovered(what);
}

Lateness TurnWatch::lateness() const {
  auto lateness = lateness_;
  lateness.busiest_turn = turns_.busiest();
  return lateness;
}

std::vector<SourceStatus> TurnWatch::status() const {
  auto status = notifier_.status("turns", "armed");
  status.detail =
      fmt::format("{} turns longer than {}, the longest {}; {} standstills, the longest {}", lateness_.long_turns,
                  core::to_string(options_.bound), core::to_string(in_milliseconds(lateness_.longest_turn)),
                  lateness_.standstills, core::to_string(in_milliseconds(lateness_.longest_standstill)));
  return {status};
}

}  // namespace evictd::wake
