#include "agent/listing_first.hpp"

namespace evictd::agent {

ListingFirst::Answer ListingFirst::ask(const Numbers& numbers, core::Instant now) {
  if (waiting_) {
    if (now - waiting_->since < patience && numbers.available > waiting_->available / 2) return Answer::wait;
    waiting_.reset();
    return Answer::go_on;
  }
  if (numbers.stray <= numbers.victim || (last_ && now - *last_ < pause)) return Answer::go_on;
  waiting_ = Waiting{.since = now, .available = numbers.available};
  last_ = now;
  return Answer::list;
}

bool ListingFirst::listed(core::Instant asked) {
  if (!waiting_ || asked < waiting_->since) return false;
  waiting_.reset();
  return true;
}

}  // namespace evictd::agent
