#include "benchmarks/soak/samples.hpp"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "benchmarks/process_cost.hpp"
#include "benchmarks/statistics.hpp"
#include "testbed/files.hpp"

namespace bench::soak {

namespace {

int entries_of(const std::filesystem::path& directory) {
  const std::filesystem::directory_iterator entries{directory};
  return static_cast<int>(std::distance(begin(entries), end(entries)));
}

double anonymous_mib_of(pid_t process) {
  std::istringstream lines{testbed::read_file(fmt::format("/proc/{}/status", process))};
  for (std::string word; lines >> word;)
    if (double kib = 0; word == "RssAnon:" && lines >> kib) return kib / 1024;
  return 0;
}

/// Times and values of what is behind the warm-up.
struct Series {
  std::vector<double> hours;
  std::vector<double> values;
};

std::optional<Trend> trend_of(const Series& series) {
  const auto count = series.values.size();
  if (count < 8) return std::nullopt;
  const auto median = [&](std::size_t from, std::size_t to) {
    const auto begin = series.values.begin();
    return summarize({begin + static_cast<std::ptrdiff_t>(from), begin + static_cast<std::ptrdiff_t>(to)}).median;
  };
  double time = 0;
  double value = 0;
  for (std::size_t i = 0; i < count; ++i) {
    time += series.hours[i] / static_cast<double>(count);
    value += series.values[i] / static_cast<double>(count);
  }
  double spread = 0;
  double common = 0;
  for (std::size_t i = 0; i < count; ++i) {
    spread += (series.hours[i] - time) * (series.hours[i] - time);
    common += (series.hours[i] - time) * (series.values[i] - value);
  }
  return Trend{.first = median(0, count / 4),
               .last = median(count - count / 4, count),
               .per_hour = spread > 0 ? common / spread : 0};
}

template <class Quantity>
std::optional<Trend> trend_from(std::span<const Sample> samples, Quantity quantity, double warm_up_minutes) {
  Series series;
  for (const auto& sample : samples) {
    if (sample.minutes < warm_up_minutes) continue;
    series.hours.push_back(sample.minutes / 60);
    series.values.push_back(static_cast<double>(std::invoke(quantity, sample)));
  }
  return trend_of(series);
}

}  // namespace

Sample sample_of(pid_t process, double minutes) {
  const auto cost = cost_of(process);
  return {.minutes = minutes,
          .resident_mib = static_cast<double>(cost.resident_bytes) / (1 << 20),
          .anonymous_mib = anonymous_mib_of(process),
          .files = entries_of(fmt::format("/proc/{}/fd", process)),
          .threads = entries_of(fmt::format("/proc/{}/task", process)),
          .cpu_seconds = std::chrono::duration<double>(cost.cpu).count()};
}

std::optional<Trend> trend(std::span<const Sample> samples, double Sample::* quantity, double warm_up_minutes) {
  return trend_from(samples, quantity, warm_up_minutes);
}

std::optional<Trend> trend(std::span<const Sample> samples, int Sample::* quantity, double warm_up_minutes) {
  return trend_from(samples, quantity, warm_up_minutes);
}

}  // namespace bench::soak
