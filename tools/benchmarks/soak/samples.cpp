#include "benchmarks/soak/samples.hpp"

#include <fmt/format.h>

#include <boost/json/value_from.hpp>
#include <boost/math/statistics/linear_regression.hpp>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/process_cost.hpp"
#include "benchmarks/report.hpp"

namespace bench::soak {

namespace json = boost::json;

namespace {

// By how much evictd may have grown between the quarters that a Trend compares: it may use a cache that it did not need
// before, and gRPC lets go of threads at its leisure.
constexpr double more_mib = 2;
constexpr double more_of_memory = 0.1;  // beside those
constexpr double more_threads = 4;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool memory_tells = false;
#else
constexpr bool memory_tells = true;
#endif

void check_flat(std::string_view what, const std::optional<Trend>& trend, double allowed, Findings& findings) {
  if (!trend || trend->last <= trend->first + allowed) return;
  findings.add(
      fmt::format("{} grew: {:.1f} in the first quarter after the warm-up, {:.1f} in the last ({:+.1f} an hour)", what,
                  trend->first, trend->last, trend->per_hour));
}

}  // namespace

Sample sample_of(pid_t process, double minutes) {
  const auto cost = cost_of(process);
  const std::filesystem::directory_iterator files{"/proc/" + std::to_string(process) + "/fd"};
  return {.minutes = minutes,
          .resident_mib = static_cast<double>(cost.resident_bytes) / (1 << 20),
          .anonymous_mib = static_cast<double>(cost.anonymous_bytes) / (1 << 20),
          .files = static_cast<int>(std::distance(begin(files), end(files))),
          .threads = cost.threads,
          .cpu_seconds = std::chrono::duration<double>(cost.cpu).count()};
}

std::optional<Trend> trend(std::span<const Sample> samples, const std::function<double(const Sample&)>& quantity,
                           double warm_up_minutes) {
  std::vector<double> hours;
  std::vector<double> values;
  for (const auto& sample : samples) {
    if (sample.minutes < warm_up_minutes) continue;
    hours.push_back(sample.minutes / 60);
    values.push_back(quantity(sample));
  }
  const auto count = values.size();
  if (count < 8) return std::nullopt;
  const auto quarter = static_cast<std::ptrdiff_t>(count / 4);
  return Trend{.first = summarize({values.begin(), values.begin() + quarter}).median,
               .last = summarize({values.end() - quarter, values.end()}).median,
               .per_hour = boost::math::statistics::simple_ordinary_least_squares(hours, values).second};
}

void tag_invoke(boost::json::value_from_tag, boost::json::value& result, const Sample& sample) {
  result = {{"minutes", sample.minutes},   {"residentMiB", sample.resident_mib}, {"anonymousMiB", sample.anonymous_mib},
            {"descriptors", sample.files}, {"threads", sample.threads},          {"cpuSeconds", sample.cpu_seconds}};
}

void tag_invoke(boost::json::value_from_tag, boost::json::value& result, const Trend& trend) {
  result = {{"firstQuarter", trend.first}, {"lastQuarter", trend.last}, {"perHour", trend.per_hour}};
}

json::object judge_growth(std::span<const Sample> samples, double warm_up_minutes, Findings& findings) {
  const auto memory = trend(samples, &Sample::resident_mib, warm_up_minutes);
  const auto files = trend(samples, &Sample::files, warm_up_minutes);
  const auto threads = trend(samples, &Sample::threads, warm_up_minutes);
  if (memory_tells && memory)
    check_flat("memory (RSS, MiB)", memory, more_mib + more_of_memory * memory->first, findings);
  check_flat("threads", threads, more_threads, findings);
  const auto told = [](const std::optional<Trend>& of) { return of ? json::value_from(*of) : json::value(nullptr); };
  return {{"residentMiB", told(memory)}, {"descriptors", told(files)}, {"threads", told(threads)}};
}

}  // namespace bench::soak
