#include "wake/tripwire_rule.hpp"

#include <fmt/format.h>

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

/// The pods' counter has what a node's does not: page tables, stacks, slab (the root of cgroup v2). So it may fire
/// early, by a part of what they grew by; and then it is set anew, unless less than half of the way was gone. Where a
/// shortage passes without anybody's end, what is held to no end would be held again and again.
void TripwireRule::passed(const Seen& seen, core::Instant now) {
  if (seen.read <= read_) return;
  read_ = seen.read;
  is_short_ = seen.distance && *seen.distance < 0;
  releasing_ = seen.releasing;
  if (!is_short_) given_up_ = false;
  if (!held_since_ || seen.read < *held_since_) return;  // what fired since is not in it
  was_short_ = was_short_ || is_short_ || releasing_;
  if (is_short_ && !releasing_ && !seen.nobody_goes) return;
  held_since_.reset();
  if (releasing_) return;
  given_up_ = is_short_;
  if (is_short_)
    rest("nobody may be evicted", now);
  else if (was_short_)
    rest("memory was short for a moment", now);
  else if (seen.distance && *seen.distance <= stood_at_ / 2)
    fired_early_ = true;
  else
    was_for_nothing(now);
}

void TripwireRule::was_for_nothing(core::Instant now) {
  ++spurious_;
  rest("nothing was short when it fired", now);
}

void TripwireRule::rest(std::string_view why, core::Instant now) {
  why_rest_ = why;
  const bool soon = rests_until_ && now - *rests_until_ < rest_;
  rest_ = soon ? std::min(2 * rest_, settings_.longest_rest) : settings_.shortest_rest;
  rests_until_ = now + rest_;
}

TripwireRule::Decision TripwireRule::hold() const {
  return {.wish = Wish::Keep, .until = *held_since_ + settings_.longest_hold};
}

std::optional<TripwireRule::Decision> TripwireRule::decide(core::Instant now) {
  if (releasing_)
    return Decision{.wish = Wish::Lift,
                    .why = "lifted: an evicted pod's memory is coming back, or evictd only watches"};
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
          .why = fmt::format("waiting: {}; not set again for {}", why_rest_,
                             core::to_string(std::chrono::ceil<std::chrono::seconds>(rest_))),
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
  if ((!stands || fired_early_) && *distance < settings_.clearance)
    return {.wish = Wish::Lift, .why = "waiting: memory is nearly short"};
  fired_early_ = false;
  stood_at_ = *distance;
  return {};
}

}  // namespace evictd::wake
