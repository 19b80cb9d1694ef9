#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <iterator>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "benchmarks/cluster.hpp"
#include "benchmarks/cluster_objects.hpp"

namespace bench {

namespace json = boost::json;

namespace {

constexpr std::array<std::string_view, calls> call_names{"lists",  "watches",  "nodeReads", "podReads",   "conditions",
                                                         "taints", "statuses", "podEvents", "nodeEvents", "other"};
constexpr double kibi = 1024;

int sum(const std::vector<int>& seconds) { return std::accumulate(seconds.begin(), seconds.end(), 0); }
int greatest(const std::vector<int>& seconds) { return seconds.empty() ? 0 : std::ranges::max(seconds); }

std::array<const ClusterPhase*, 6> troubles(const ClusterResult& result) {
  return {&result.start, &result.outage, &result.back, &result.ended, &result.storm, &result.calm};
}

void add_row(std::string& table, const ClusterPhase& phase, double share, int places) {
  const auto each = [&](double count) { return fmt::format("{:.{}f}", count * share, places); };
  fmt::format_to(std::back_inserter(table), "{:<15}", phase.name);
  for (std::size_t call = 0; call < calls; ++call)
    fmt::format_to(std::back_inserter(table), "{:>8}", each(phase.count(static_cast<Call>(call))));
  fmt::format_to(std::back_inserter(table), "{:>8}{:>8}{:>8}{:>9.1f}{:>9.1f}\n", each(phase.connections),
                 each(phase.bookmarks), each(phase.changes), static_cast<double>(phase.bytes_in) * share / kibi,
                 static_cast<double>(phase.bytes_out) * share / kibi);
}

constexpr std::string_view columns =
    "                  lists watches   reads pod rds. condit.  taints statuses  events n.events  other  conns bookm. "
    "changes   "
    "KiB "
    "in  KiB out\n";

std::string seconds_of(std::string_view what, const std::vector<int>& seconds) {
  return fmt::format("{}: {}\n", what, fmt::join(seconds, " "));
}

json::object phase_json(const ClusterPhase& phase) {
  json::object requests;
  for (std::size_t call = 0; call < calls; ++call)
    requests[call_names.at(call)] = json::value_from(phase.requests.at(call));
  return {{"phase", phase.name},
          {"seconds", phase.seconds},
          {"requestsPerSecond", std::move(requests)},
          {"turnedAwayPerSecond", json::value_from(phase.turned_away)},
          {"connections", phase.connections},
          {"bookmarks", phase.bookmarks},
          {"changes", phase.changes},
          {"bytesIn", phase.bytes_in},
          {"bytesOut", phase.bytes_out},
          {"mostRequestsOfANode", phase.most_of_a_node}};
}

}  // namespace

int ClusterPhase::count(Call call) const { return sum(requests.at(static_cast<std::size_t>(call))); }

int ClusterPhase::all_requests() const {
  return std::accumulate(requests.begin(), requests.end(), 0,
                         [](int before, const auto& seconds) { return before + sum(seconds); });
}

int ClusterPhase::peak(Call call) const { return greatest(requests.at(static_cast<std::size_t>(call))); }

int ClusterPhase::peak() const {
  std::vector<int> together(turned_away.size());
  for (const auto& seconds : requests)
    for (std::size_t second = 0; second < seconds.size(); ++second) together.at(second) += seconds.at(second);
  return greatest(together);
}

std::string cluster_table(const ClusterResult& result, const ClusterOptions& options) {
  auto table = fmt::format(
      "{} nodes of {} pods against one server over plain HTTP. A pod is {:.1f} KiB of JSON, a node {:.1f} KiB.\n\n"
      "Of one node, the average; all nodes start within a moment, startSpread is {} s:\n\n{}",
      options.nodes, options.pods, static_cast<double>(result.pod_bytes) / kibi,
      static_cast<double>(result.node_bytes) / kibi, static_cast<double>(options.start_spread.count()) / 1000, columns);
  for (const auto* phase : troubles(result)) add_row(table, *phase, 1.0 / options.nodes, 2);

  const double hours = result.rest.seconds * options.haste / 3600;
  table += fmt::format(
      "\nAt rest, of one node in an hour, from {:.0f} s in which heartbeats, bookmarks and the ends of watches came {} "
      "times as often:\n\n{}",
      result.rest.seconds, options.haste, columns);
  add_row(table, result.rest, 1 / (hours * options.nodes), 1);

  table += "\nOf all nodes:\n\n";
  for (const auto* phase : troubles(result))
    table += fmt::format("{:<15}{:>7.1f} s, {:>6} requests, {:>6} in the busiest second, {:>3} of the busiest node\n",
                         phase->name, phase->seconds, phase->all_requests(), phase->peak(), phase->most_of_a_node);
  table += "\nIn each second:\n\n";
  const auto index = [](Call call) { return static_cast<std::size_t>(call); };
  table += seconds_of("lists after the start", result.start.requests.at(index(Call::List)));
  table += seconds_of("connections turned away in the outage", result.outage.turned_away);
  table += seconds_of("watches after the outage", result.back.requests.at(index(Call::Watch)));
  table += seconds_of("watches after the server ended all", result.ended.requests.at(index(Call::Watch)));
  table += fmt::format("\n{} evictions: {} statuses and {} events told, {} of them again.\n", result.evictions,
                       result.told.statuses, result.told.events, result.told.again);
  return table;
}

std::string cluster_json(const ClusterResult& result, const ClusterOptions& options) {
  json::array phases;
  for (const auto* phase : troubles(result)) phases.push_back(phase_json(*phase));
  phases.push_back(phase_json(result.rest));
  return json::serialize(json::object{
      {"bench", "cluster"},
      {"nodes", options.nodes},
      {"podsOfANode", options.pods},
      {"podBytes", result.pod_bytes},
      {"nodeBytes", result.node_bytes},
      {"haste", options.haste},
      {"phases", std::move(phases)},
      {"evictions", result.evictions},
      {"told", {{"statuses", result.told.statuses}, {"events", result.told.events}, {"again", result.told.again}}}});
}

}  // namespace bench
