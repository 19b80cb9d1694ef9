#include "kube/wall_time.hpp"

#include <fmt/format.h>

namespace evictd::kube {

WallTime wall_time_of(core::Instant time) {
  const auto age = std::chrono::steady_clock::now() - time;
  return std::chrono::system_clock::now() - std::chrono::duration_cast<WallTime::duration>(age);
}

std::string rfc3339(WallTime time) {
  using namespace std::chrono;
  const auto seconds_since = floor<seconds>(time);
  const auto day = floor<days>(seconds_since);
  const year_month_day date{day};
  const hh_mm_ss clock{seconds_since - day};
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count());
}

}  // namespace evictd::kube
