#pragma once
#include <sys/types.h>

#include <boost/json/value.hpp>
#include <functional>
#include <optional>
#include <span>

#include "benchmarks/soak/findings.hpp"

namespace bench::soak {

/// What evictd holds at one moment.
struct Sample {
  double minutes = 0;  ///< since the soak began
  double resident_mib = 0;
  double anonymous_mib = 0;  ///< of it, what is no file's: what it has allocated
  int files = 0;             ///< open descriptors
  int threads = 0;
  double cpu_seconds = 0;  ///< since its start
};

[[nodiscard]] Sample sample_of(pid_t process, double minutes);

/// A quantity over time: the medians of the first and the last quarter after the warm-up, and the slope of a straight
/// line through all of it (least squares).
struct Trend {
  double first = 0;
  double last = 0;
  double per_hour = 0;
};

/// Of the samples from `warm_up_minutes` on. Nothing where they are fewer than 8.
[[nodiscard]] std::optional<Trend> trend(std::span<const Sample> samples,
                                         const std::function<double(const Sample&)>& quantity, double warm_up_minutes);

// For boost::json::value_from.
void tag_invoke(boost::json::value_from_tag, boost::json::value& result, const Sample& sample);
void tag_invoke(boost::json::value_from_tag, boost::json::value& result, const Trend& trend);

/// Whether memory and threads stayed flat from the end of the warm-up on, and the trends of all three; null where the
/// samples are too few. Memory is not judged where a sanitizer keeps what was freed. Descriptors follow the pods and
/// subscribers that happen to be there, by dozens: they are judged to the last one where the same pods stand and nobody
/// reads, before and after.
boost::json::object judge_growth(std::span<const Sample> samples, double warm_up_minutes, Findings& findings);

}  // namespace bench::soak
