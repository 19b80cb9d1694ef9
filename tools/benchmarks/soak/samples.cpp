#include "benchmarks/soak/samples.hpp"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "benchmarks/process_cost.hpp"
#include "benchmarks/report.hpp"

namespace bench::soak {

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
  double time = 0;
  double value = 0;
  for (std::size_t i = 0; i < count; ++i) {
    time += hours[i] / static_cast<double>(count);
    value += values[i] / static_cast<double>(count);
  }
  double spread = 0;
  double common = 0;
  for (std::size_t i = 0; i < count; ++i) {
    spread += (hours[i] - time) * (hours[i] - time);
    common += (hours[i] - time) * (values[i] - value);
  }
  const auto quarter = static_cast<std::ptrdiff_t>(count / 4);
  return Trend{.first = summarize({values.begin(), values.begin() + quarter}).median,
               .last = summarize({values.end() - quarter, values.end()}).median,
               .per_hour = spread > 0 ? common / spread : 0};
}

void tag_invoke(boost::json::value_from_tag, boost::json::value& result, const Sample& sample) {
  result = {{"minutes", sample.minutes},   {"residentMiB", sample.resident_mib}, {"anonymousMiB", sample.anonymous_mib},
            {"descriptors", sample.files}, {"threads", sample.threads},          {"cpuSeconds", sample.cpu_seconds}};
}

void tag_invoke(boost::json::value_from_tag, boost::json::value& result, const Trend& trend) {
  result = {{"firstQuarter", trend.first}, {"lastQuarter", trend.last}, {"perHour", trend.per_hour}};
}

}  // namespace bench::soak
