#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "benchmarks/latency.hpp"
#include "benchmarks/statistics.hpp"
#include "benchmarks/variant.hpp"

namespace bench {

namespace json = boost::json;

namespace {

const LatencySummary* find_floor(const std::vector<LatencySummary>& summaries) {
  const auto found = std::ranges::find(summaries, Variant::floor, &LatencySummary::variant);
  return found == summaries.end() ? nullptr : &*found;
}

/// How many times as much as the floor. Nothing where the floor's is too small to tell, or comes before the crossing.
std::optional<double> ratio(double value, double floor) {
  constexpr double least = 0.05;  // what the observer can tell, ms; and a few pages, MiB
  return floor < least ? std::nullopt : std::optional(value / floor);
}

json::object describe(const Summary& summary, const Summary* floor) {
  json::object object{{"median", summary.median}, {"p90", summary.p90}, {"max", summary.max}};
  if (floor == nullptr) return object;
  if (const auto times = ratio(summary.median, floor->median)) object["ratioOfMedians"] = *times;
  if (const auto times = ratio(summary.p90, floor->p90)) object["ratioOfP90s"] = *times;
  return object;
}

void add_row(std::string& table, const LatencySummary& of, std::string_view stage, const Summary& summary,
             const Summary* floor) {
  const auto times = [&](double value, double lower) {
    const auto known = floor != nullptr ? ratio(value, lower) : std::nullopt;
    return known ? fmt::format("{:.{}f}", *known, *known < 100 ? 2 : 0) : std::string{"-"};
  };
  fmt::format_to(std::back_inserter(table), "{:<18}{:<15}{:>9.2f}{:>9.2f}{:>9.2f}{:>9}{:>9}\n", name(of.variant), stage,
                 summary.median, summary.p90, summary.max, times(summary.median, floor ? floor->median : 0),
                 times(summary.p90, floor ? floor->p90 : 0));
}

}  // namespace

std::string latency_table(const std::vector<LatencySummary>& summaries, int trials) {
  const auto* floor = find_floor(summaries);
  auto table = fmt::format(
      "Milliseconds since the node's usage crossed the threshold, {} trials each; x: times the floor's.\n\n"
      "{:<18}{:<15}{:>9}{:>9}{:>9}{:>9}{:>9}\n",
      trials, "", "", "median", "p90", "max", "x median", "x p90");
  for (const auto& summary : summaries) {
    const auto* compared = summary.variant == Variant::floor ? nullptr : floor;
    for (std::size_t stage = 0; stage < latency_stages.size(); ++stage)
      add_row(table, summary, latency_stages[stage], summary.milliseconds[stage],
              compared ? &compared->milliseconds[stage] : nullptr);
    add_row(table, summary, "overshoot MiB", summary.overshoot_mib, compared ? &compared->overshoot_mib : nullptr);
    table += '\n';
  }
  return table;
}

std::string latency_json(const std::vector<LatencySummary>& summaries, const std::vector<LatencyTrial>& trials) {
  const auto* floor = find_floor(summaries);
  json::object variants;
  for (const auto& summary : summaries) {
    const auto* compared = summary.variant == Variant::floor ? nullptr : floor;
    json::object stages;
    for (std::size_t stage = 0; stage < latency_stages.size(); ++stage)
      stages[latency_stages[stage]] =
          describe(summary.milliseconds[stage], compared ? &compared->milliseconds[stage] : nullptr);
    variants[name(summary.variant)] =
        json::object{{"milliseconds", std::move(stages)},
                     {"overshootMiB", describe(summary.overshoot_mib, compared ? &compared->overshoot_mib : nullptr)}};
  }
  json::array each;
  for (const auto& trial : trials) {
    json::object times;
    for (std::size_t stage = 0; stage < latency_stages.size(); ++stage)
      times[latency_stages[stage]] =
          trial.milliseconds[stage] ? json::value(*trial.milliseconds[stage]) : json::value(nullptr);
    each.push_back(json::object{
        {"variant", name(trial.variant)}, {"milliseconds", std::move(times)}, {"overshootMiB", trial.overshoot_mib}});
  }
  return json::serialize(
      json::object{{"bench", "latency"}, {"variants", std::move(variants)}, {"trials", std::move(each)}});
}

}  // namespace bench
