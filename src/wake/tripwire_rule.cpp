#include "wake/tripwire_rule.hpp"

#include <algorithm>
#include <utility>

namespace evictd::wake {

bool TripwireRule::tripped(core::Instant now) {
  if (held_since_) return false;
  held_since_ = now;
  was_short_ = false;
  ++trips_;
  return true;
}

void TripwireRule::passed(core::Instant read, bool is_short, bool releasing, core::Instant now) {
  if (read <= read_) return;
  read_ = read;
  is_short_ = is_short;
  releasing_ = releasing;
  if (!is_short) given_up_ = false;
  if (!held_since_ || read < *held_since_) return;  // what spoke since is not in it
  was_short_ = was_short_ || is_short || releasing;
  if (is_short && !releasing) return;
  held_since_.reset();
  if (!was_short_) was_for_nothing(now);
}

void TripwireRule::was_for_nothing(core::Instant now) {
  ++spurious_;
  const bool soon = rests_until_ && now - *rests_until_ < rest_;
  rest_ = soon ? std::min(2 * rest_, settings_.longest_rest) : settings_.shortest_rest;
  rests_until_ = now + rest_;
}

TripwireRule::Decision TripwireRule::hold() const {
  return {.wish = Wish::Keep, .until = *held_since_ + settings_.longest_hold};
}

std::optional<TripwireRule::Decision> TripwireRule::decide(core::Instant now) {
  if (releasing_) return Decision{.wish = Wish::Lift, .why = "lifted: an evicted pod's memory is coming back"};
  if (held_since_ && now - *held_since_ < settings_.longest_hold) return hold();
  if (held_since_) {
    held_since_.reset();
    given_up_ = true;
  }
  if (rests_until_ && now < *rests_until_) return resting();
  return std::nullopt;
}

TripwireRule::Decision TripwireRule::resting() const {
  return {.wish = Wish::Lift,
          .why = "waiting: file cache tripped it; not set again for " +
                 core::to_string(std::chrono::ceil<std::chrono::seconds>(rest_)),
          .until = rests_until_};
}

TripwireRule::Decision TripwireRule::by_distance(std::optional<std::int64_t> distance, bool stands, core::Instant now) {
  if (!distance) return {.wish = Wish::Lift, .why = "waiting: no hard memory threshold"};
  if (*distance < 0) {
    Decision decision{.wish = Wish::Lift, .why = "lifted: memory is short"};
    if (stands && !given_up_) {
      held_since_ = now;
      was_short_ = true;
      decision = hold();
    }
    decision.news = !is_short_;
    return decision;
  }
  if (std::exchange(given_up_, false) && !was_short_) {
    was_for_nothing(now);
    return resting();
  }
  if (!stands && *distance < settings_.clearance) return {.wish = Wish::Lift, .why = "waiting: memory is nearly short"};
  return {};
}

}  // namespace evictd::wake
