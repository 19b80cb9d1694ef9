#include "benchmarks/soak/crossings.hpp"

#include <algorithm>
#include <cstdlib>

#include "benchmarks/observer.hpp"
#include "benchmarks/soak/dice.hpp"

namespace bench::soak {

using namespace std::chrono_literals;

Crossings::Crossings(testbed::Testbed& testbed, std::int64_t level)
    : level_{level},
      usage_{open_counter(testbed.node().memory_directory(), usage_file())},
      stat_{open_counter(testbed.node().memory_directory(), "memory.stat")} {}

std::int64_t Crossings::working_set() const {
  const auto usage = std::atoll(read_counter(usage_).c_str());
  return std::max<std::int64_t>(usage - inactive_file(read_counter(stat_)), 0);
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
      longest_ms_ = std::max(longest_ms_, static_cast<double>(now - since) / 1e6);
    }
  };
  do look();
  while (pause(stop, 10ms));
}

}  // namespace bench::soak
