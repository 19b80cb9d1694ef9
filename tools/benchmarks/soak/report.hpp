#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/report.hpp"

namespace bench::soak {

/// Of which part of the figures, how it is headed, and what it says.
struct ReportLine {
  std::string_view part;
  std::string_view heading;
  std::string_view format;
};
inline constexpr ReportLine report_lines[] = {
    {"/crossings", "crossings answered", "{answered} of {hadToBeAnswered} ({alone} alone, {pairs} pairs)"},
    {"/crossings", "came near and stayed", "{near}"},
    {"/crossings", "crossed for a moment", "{brief}, of which {briefEvicted} were evicted"},
    {"/evictions", "evictions", "{all}, wrong victims {wrongVictims}, steps that failed {failedSteps}"},
    {"/crossings/growthToDeathMs", "growth to death, ms",
     "{median:.0f} / {p90:.0f} / {max:.0f} (median, p90, greatest)"},
    {"/crossings/wakeUpToKillMs", "wake-up to kill, ms", "{median:.2f} / {p90:.2f} / {max:.2f}"},
    {"/crossings", "beyond the threshold", "{seenFromOutside}x seen from outside, {longestMs:.0f} ms at the longest"},
    {"/pods", "pods", "{started} started, {removed} removed, {startsBrokenOff} starts broken off"},
    {"/containerd", "containerd", "{killed}x killed, {stopped}x stopped"},
    {"/events", "events", "{last}, told {told}x to {visits} visits ({resumed} resumed), gaps {gaps}, cut off {cutOff}"},
};
inline constexpr std::string_view trend_format = "{firstQuarter:.1f} and {lastQuarter:.1f}, {perHour:+.2f} an hour";
inline constexpr ReportLine report_trends[] = {{"/residentMiB", "RSS, MiB", trend_format},
                                               {"/descriptors", "descriptors", trend_format},
                                               {"/threads", "threads", trend_format}};

inline Row row_of(const std::string& when, const boost::json::value& sample) {
  return {{"", "minute", when},
          {"", "RSS, MiB", sample.at("residentMiB"), "{:.1f}"},
          {"", "anonymous", sample.at("anonymousMiB"), "{:.1f}"},
          {"", "descriptors", sample.at("descriptors")},
          {"", "threads", sample.at("threads")},
          {"", "CPU, seconds", sample.at("cpuSeconds"), "{:.1f}"}};
}

/// The settled ones, and between them so many of the others that they fill a table, the first and the last among them.
inline std::string over_time(const boost::json::object& figures) {
  constexpr std::size_t most = 13;
  const auto& samples = figures.at("samples").as_array();
  const auto count = std::min(samples.size(), most);
  std::vector<Row> rows{row_of("before", figures.at("settledBefore"))};
  for (std::size_t i = 0; i < count; ++i) {
    const auto& sample = samples[count < most ? i : i * (samples.size() - 1) / (most - 1)];
    rows.push_back(row_of(filled("{minutes:.1f}", sample), sample));
  }
  rows.push_back(row_of("after", figures.at("settledAfter")));
  return table_of(rows);
}

/// Of all figures, for people.
inline std::string text_of(const boost::json::object& figures, int pods, int subscribers) {
  const boost::json::value whole = figures;
  auto text = filled(figures.at("interrupted").as_bool() ? "Soak of {minutes:.1f} min, interrupted, seed {seed}: "
                                                         : "Soak of {minutes:.1f} min, seed {seed}: ",
                     whole) +
              fmt::format("a node of {} pods, {} subscribers.\n\n", pods, subscribers);
  const auto add = [&](std::string_view heading, std::string_view what) {
    fmt::format_to(std::back_inserter(text), "{:<24}{}\n", heading, what);
  };
  for (const auto& [part, heading, format] : report_lines) add(heading, filled(format, whole.at_pointer(part)));
  for (const auto& [source, count] : figures.at("degraded").as_object())
    add("said to have failed", fmt::format("{} {}x", std::string_view(source), count.as_int64()));
  text += filled("\nMedians of the first and the last quarter after {warmUpMinutes:.1f} min of warm-up:\n", whole);
  for (const auto& [part, heading, format] : report_trends)
    add(heading, whole.at_pointer(part).is_null() ? "too few samples" : filled(format, whole.at_pointer(part)));
  text += "\n" + over_time(figures) + "\n";
  for (const auto& violated : figures.at("violated").as_array())
    text += "VIOLATED: " + std::string(violated.as_string()) + "\n";
  return text + filled(figures.at("violations") == 0 ? "All of it held.\n" : "{violations} violations.\n", whole);
}

}  // namespace bench::soak
