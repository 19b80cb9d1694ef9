#include <fmt/format.h>

#include <boost/json.hpp>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/soak/samples.hpp"
#include "benchmarks/soak/soak.hpp"
#include "benchmarks/statistics.hpp"

namespace bench::soak {

namespace json = boost::json;

namespace {

constexpr std::size_t most_rows = 13;

/// So many of the samples that they fill a table, the first and the last among them.
std::vector<Sample> some_of(const std::vector<Sample>& samples) {
  if (samples.size() <= most_rows) return samples;
  std::vector<Sample> rows;
  for (std::size_t i = 0; i < most_rows; ++i) rows.push_back(samples[i * (samples.size() - 1) / (most_rows - 1)]);
  return rows;
}

std::string over_time(const Result& result) {
  auto text = fmt::format("{:>8}{:>12}{:>12}{:>14}{:>10}{:>14}\n", "minute", "RSS, MiB", "anonymous", "descriptors",
                          "threads", "CPU, seconds");
  const auto row = [&](const std::string& when, const Sample& s) {
    fmt::format_to(std::back_inserter(text), "{:>8}{:>12.1f}{:>12.1f}{:>14}{:>10}{:>14.1f}\n", when, s.resident_mib,
                   s.anonymous_mib, s.files, s.threads, s.cpu_seconds);
  };
  row("before", result.settled_before);
  for (const auto& sample : some_of(result.samples)) row(fmt::format("{:.1f}", sample.minutes), sample);
  row("after", result.settled_after);
  return text;
}

std::string trend_text(const char* what, const std::optional<Trend>& trend) {
  if (!trend) return fmt::format("{:<24}too few samples\n", what);
  return fmt::format("{:<24}{:.1f} and {:.1f}, {:+.2f} an hour\n", what, trend->first, trend->last, trend->per_hour);
}

json::value trend_json(const std::optional<Trend>& trend) {
  if (!trend) return nullptr;
  return json::object{{"firstQuarter", trend->first}, {"lastQuarter", trend->last}, {"perHour", trend->per_hour}};
}

json::object sample_json(const Sample& sample) {
  return {{"minutes", sample.minutes},   {"residentMiB", sample.resident_mib}, {"anonymousMiB", sample.anonymous_mib},
          {"descriptors", sample.files}, {"threads", sample.threads},          {"cpuSeconds", sample.cpu_seconds}};
}

json::object summary_json(const Summary& summary) {
  return {{"median", summary.median}, {"p90", summary.p90}, {"max", summary.max}};
}

}  // namespace

std::string as_table(const Result& result, const Options& options) {
  const auto& hogs = result.hogs;
  auto text = fmt::format("Soak of {:.1f} min{}, seed {}: a node of {} pods, {} subscribers.\n\n", result.minutes,
                          result.interrupted ? ", interrupted" : "", options.seed, options.pods, options.subscribers);
  const auto line = [&](const char* what, const std::string& value) {
    fmt::format_to(std::back_inserter(text), "{:<24}{}\n", what, value);
  };
  line("crossings answered",
       fmt::format("{} of {} ({} alone, {} pairs)", hogs.answered, hogs.had_to_go(), hogs.alone, hogs.pairs));
  line("came near and stayed", fmt::format("{}", hogs.near));
  line("crossed for a moment", fmt::format("{}, of which {} were evicted", hogs.brief, hogs.brief_evicted));
  line("evictions", fmt::format("{}, wrong victims {}, steps that failed {}", result.evictions, result.wrong_victims,
                                result.failed_steps));
  line("growth to death, ms", fmt::format("{:.0f} / {:.0f} / {:.0f} (median, p90, greatest)", result.dead_ms.median,
                                          result.dead_ms.p90, result.dead_ms.max));
  line("wake-up to kill, ms",
       fmt::format("{:.2f} / {:.2f} / {:.2f}", result.kill_ms.median, result.kill_ms.p90, result.kill_ms.max));
  line("beyond the threshold", fmt::format("{}x seen from outside, {:.0f} ms at the longest", result.crossings_seen,
                                           result.longest_crossing_ms));
  line("pods", fmt::format("{} started, {} removed, {} starts broken off", result.pods_started, result.pods_removed,
                           result.starts_broken_off));
  line("containerd", fmt::format("{}x killed, {}x stopped", result.containerd_kills, result.containerd_stops));
  line("events", fmt::format("{}, told {}x to {} visits ({} resumed), gaps {}, cut off {}", result.events,
                             result.events_told, result.visits, result.resumed, result.gaps, result.cut_off));
  for (const auto& [source, count] : result.degraded) line("said to have failed", fmt::format("{} {}x", source, count));
  text +=
      fmt::format("\nMedians of the first and the last quarter after {:.1f} min of warm-up:\n", result.warm_up_minutes);
  text += trend_text("RSS, MiB", result.resident_mib);
  text += trend_text("descriptors", result.files);
  text += trend_text("threads", result.threads);
  text += "\n" + over_time(result) + "\n";
  for (const auto& violated : result.violated) text += "VIOLATED: " + violated + "\n";
  text += result.violations == 0 ? "All of it held.\n" : fmt::format("{} violations.\n", result.violations);
  return text;
}

std::string as_json(const Result& result, const Options& options) {
  const auto& hogs = result.hogs;
  json::array samples;
  for (const auto& sample : result.samples) samples.push_back(sample_json(sample));
  json::object degraded;
  for (const auto& [source, count] : result.degraded) degraded[source] = count;
  return json::serialize(json::object{
      {"bench", "soak"},
      {"seed", options.seed},
      {"minutes", result.minutes},
      {"interrupted", result.interrupted},
      {"pods", json::object{{"started", result.pods_started},
                            {"removed", result.pods_removed},
                            {"startsBrokenOff", result.starts_broken_off}}},
      {"containerd", json::object{{"killed", result.containerd_kills}, {"stopped", result.containerd_stops}}},
      {"crossings", json::object{{"hadToBeAnswered", hogs.had_to_go()},
                                 {"answered", hogs.answered},
                                 {"pairs", hogs.pairs},
                                 {"near", hogs.near},
                                 {"brief", hogs.brief},
                                 {"briefEvicted", hogs.brief_evicted},
                                 {"seenFromOutside", result.crossings_seen},
                                 {"longestMs", result.longest_crossing_ms},
                                 {"growthToDeathMs", summary_json(result.dead_ms)},
                                 {"wakeUpToKillMs", summary_json(result.kill_ms)}}},
      {"evictions",
       json::object{
           {"all", result.evictions}, {"wrongVictims", result.wrong_victims}, {"failedSteps", result.failed_steps}}},
      {"events", json::object{{"last", result.events},
                              {"visits", result.visits},
                              {"resumed", result.resumed},
                              {"told", result.events_told},
                              {"gaps", result.gaps},
                              {"cutOff", result.cut_off}}},
      {"degraded", std::move(degraded)},
      {"warmUpMinutes", result.warm_up_minutes},
      {"residentMiB", trend_json(result.resident_mib)},
      {"descriptors", trend_json(result.files)},
      {"threads", trend_json(result.threads)},
      {"settledBefore", sample_json(result.settled_before)},
      {"settledAfter", sample_json(result.settled_after)},
      {"violations", result.violations},
      {"violated", json::value_from(result.violated)},
      {"samples", std::move(samples)}});
}

}  // namespace bench::soak
