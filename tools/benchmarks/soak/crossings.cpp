#include "benchmarks/soak/crossings.hpp"

#include <algorithm>

#include "benchmarks/observer.hpp"
#include "benchmarks/soak/dice.hpp"

namespace bench::soak {

using namespace std::chrono_literals;

std::int64_t Crossings::working_set() const {
  return std::max<std::int64_t>(node_.memory_usage() - node_.memory_stat("inactive_file"), 0);
}

void Crossings::watch(const std::stop_token& stop) {
  Nanoseconds since = 0;  // when the node went beyond; 0: it is not
  const auto look = [&] {
    const auto now = monotonic_now();
    if (working_set() <= level_) {
      since = 0;
    } else if (since == 0) {
      since = now;
      ++count_;
    } else {
      longest_ms_ = std::max(longest_ms_, milliseconds(now - since));
    }
  };
  do look();
  while (pause(stop, 10ms));
}

}  // namespace bench::soak
