#include "benchmarks/cluster.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/json.hpp>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "benchmarks/commands.hpp"
#include "benchmarks/simulated_node.hpp"
#include "testbed/failure.hpp"

namespace bench {

namespace asio = boost::asio;
namespace json = boost::json;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

/// Each node has two connections, and both ends of them are here.
void allow_connections(int nodes) {
  const auto wanted = 4 * static_cast<rlim_t>(nodes) + 256;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= wanted) return;
  limit = {.rlim_cur = wanted, .rlim_max = std::max(limit.rlim_max, wanted)};
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) testbed::fail_errno(fmt::format("{} open files", wanted));
}

/// A cluster, alive.
class Cluster {
 public:
  Cluster(const ClusterOptions& options, int haste)
      : options_{options}, server_{reactor_, options.nodes, options.pods, 60'000ms / haste} {
    for (int number = 0; number < options.nodes; ++number)
      nodes_.push_back(std::make_unique<SimulatedNode>(
          reactor_.get_executor(), pool_.get_executor(),
          SimulatedNode::Options{
              .port = server_.port(), .number = number, .start_spread = options.start_spread, .haste = haste}));
  }
  /// What the pool has still to do posts to the reactor, so it ends first.
  ~Cluster() {
    for (const auto& node : nodes_) node->stop();
    pool_.join();
  }
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  [[nodiscard]] CountingServer& server() { return server_; }
  void each(const std::function<void(SimulatedNode&)>& visit) {
    for (const auto& node : nodes_) visit(*node);
  }

  void run_for(std::chrono::milliseconds time) { reactor_.run_for(time); }
  void run_until(const std::string& what, const std::function<bool()>& holds) {
    const auto give_up = Clock::now() + 5min;
    while (!holds()) {
      if (Clock::now() > give_up) testbed::fail("not within five minutes: " + what);
      reactor_.run_for(20ms);
    }
  }
  void run_until_all_watch() {
    run_until("all nodes watch", [this] { return server_.watches() == options_.nodes; });
  }
  void run_until_all_told() {
    run_until("all is told",
              [this] { return std::ranges::all_of(nodes_, [](const auto& node) { return node->has_told_all(); }); });
  }
  void run_until_pods_known() {
    const auto pods = static_cast<std::size_t>(options_.pods);
    run_until("all pods are known",
              [&] { return std::ranges::all_of(nodes_, [&](const auto& node) { return node->pods() == pods; }); });
  }

  /// Does something; what came to the server meanwhile.
  ClusterPhase phase(std::string name, const std::function<void()>& work) {
    server_.begin_phase(std::move(name));
    work();
    return server_.end_phase();
  }

 private:
  const ClusterOptions& options_;
  asio::thread_pool pool_{1};
  asio::io_context reactor_{1};
  CountingServer server_;
  std::vector<std::unique_ptr<SimulatedNode>> nodes_;
};

void start(Cluster& cluster) {
  cluster.each([](SimulatedNode& node) { node.start(); });
  cluster.run_until_all_watch();
  cluster.run_until_pods_known();
  cluster.run_until_all_told();
}

void storm(Cluster& cluster, const ClusterOptions& options) {
  cluster.each([&](SimulatedNode& node) { node.come_under_pressure(options.evictions, options.between_evictions); });
  cluster.run_until_all_told();
}

void measure_trouble(const ClusterOptions& options, ClusterResult& result) {
  Cluster cluster{options, 1};
  result.start = cluster.phase("start", [&] { start(cluster); });
  result.outage = cluster.phase("outage", [&] {
    cluster.server().turn_away();
    cluster.run_for(options.outage);
  });
  result.back = cluster.phase("back", [&] {
    cluster.server().take_again();
    cluster.run_until_all_watch();
  });
  cluster.run_for(2s);  // a watch that ends in its first second is taken for a failure
  result.ended = cluster.phase("watches ended", [&] {
    cluster.server().end_watches();
    cluster.run_until_all_watch();
  });
  result.storm = cluster.phase("storm", [&] { storm(cluster, options); });
  result.calm = cluster.phase("calm again", [&] {
    cluster.each([](SimulatedNode& node) { node.recover(); });
    cluster.run_until_all_told();
  });
  cluster.run_for(200ms);  // whoever tells something twice does it now
  const auto& objects = cluster.server().objects();
  result.told = objects.told();
  result.evictions = options.nodes * options.evictions;
  result.pod_bytes = objects.pod_json(0, 0).size();
  result.node_bytes = objects.node_json(0).size();
}

void measure_rest(const ClusterOptions& options, ClusterResult& result) {
  Cluster cluster{options, options.haste};
  start(cluster);
  // Until as many watches end in a second as do for ever after.
  cluster.run_for(std::chrono::milliseconds{10min} / options.haste);
  result.rest = cluster.phase("rest", [&] { cluster.run_for(options.rest); });
}

/// Of each Call, for programs and for people.
constexpr std::array<std::pair<std::string_view, std::string_view>, calls> call_names{{{"lists", "lists"},
                                                                                       {"watches", "watches"},
                                                                                       {"nodeReads", "reads"},
                                                                                       {"podReads", "pod rds."},
                                                                                       {"conditions", "condit."},
                                                                                       {"taints", "taints"},
                                                                                       {"statuses", "statuses"},
                                                                                       {"podEvents", "events"},
                                                                                       {"nodeEvents", "n.events"},
                                                                                       {"other", "other"}}};

/// The share of one node. `how`: a format.
Row of_a_node(const ClusterPhase& phase, double share, std::string_view how) {
  Row row{{"", "", phase.name}};
  for (std::size_t call = 0; call < calls; ++call)
    row.emplace_back("", call_names.at(call).second, phase.count(static_cast<Call>(call)) * share, how);
  row.emplace_back("", "conns", phase.connections * share, how);
  row.emplace_back("", "bookm.", phase.bookmarks * share, how);
  row.emplace_back("", "changes", phase.changes * share, how);
  row.emplace_back("", "KiB in", static_cast<double>(phase.bytes_in) * share / 1024, "{:.1f}");
  row.emplace_back("", "KiB out", static_cast<double>(phase.bytes_out) * share / 1024, "{:.1f}");
  return row;
}

Row of_all_nodes(const ClusterPhase& phase) {
  json::object requests;
  for (std::size_t call = 0; call < calls; ++call)
    requests[call_names.at(call).first] = json::value_from(phase.requests.at(call));
  return {{"phase", "", phase.name},
          {"seconds", "", phase.seconds, "{:.1f} s"},
          {"requestsPerSecond", requests},
          {"turnedAwayPerSecond", phase.turned_away},
          {"connections", phase.connections},
          {"bookmarks", phase.bookmarks},
          {"changes", phase.changes},
          {"bytesIn", phase.bytes_in},
          {"bytesOut", phase.bytes_out},
          {"", "requests", phase.all_requests()},
          {"", "in the busiest second", phase.peak()},
          {"mostRequestsOfANode", "of the busiest node", phase.most_of_a_node}};
}

}  // namespace

ClusterResult measure_cluster(const ClusterOptions& options) {
  allow_connections(options.nodes);
  ClusterResult result;
  measure_trouble(options, result);
  measure_rest(options, result);
  return result;
}

Report report_of(const ClusterResult& result, const ClusterOptions& options) {
  std::vector<Row> each;
  std::vector<Row> all;
  json::array phases;
  for (const auto* phase : {&result.start, &result.outage, &result.back, &result.ended, &result.storm, &result.calm}) {
    each.push_back(of_a_node(*phase, 1.0 / options.nodes, "{:.2f}"));
    all.push_back(of_all_nodes(*phase));
    phases.push_back(json_of(all.back()));
  }
  phases.push_back(json_of(of_all_nodes(result.rest)));
  const double hours = result.rest.seconds * options.haste / 3600;
  const auto rest = {of_a_node(result.rest, 1 / (hours * options.nodes), "{:.1f}")};
  const auto seconds_of = [](const ClusterPhase& phase, Call call) {
    return fmt::join(phase.requests.at(static_cast<std::size_t>(call)), " ");
  };
  const auto& told = result.told;
  return {
      .json = {{"bench", "cluster"},
               {"nodes", options.nodes},
               {"podsOfANode", options.pods},
               {"podBytes", result.pod_bytes},
               {"nodeBytes", result.node_bytes},
               {"haste", options.haste},
               {"phases", std::move(phases)},
               {"evictions", result.evictions},
               {"told", {{"statuses", told.statuses}, {"events", told.events}, {"again", told.again}}}},
      .text =
          fmt::format("{} nodes of {} pods against one server over plain HTTP. A pod is {:.1f} KiB of JSON, a node "
                      "{:.1f} KiB.\n\n"
                      "Of one node, the average; all nodes start within a moment, startSpread is {} s:\n\n{}",
                      options.nodes, options.pods, static_cast<double>(result.pod_bytes) / 1024,
                      static_cast<double>(result.node_bytes) / 1024,
                      static_cast<double>(options.start_spread.count()) / 1000, table_of(each)) +
          fmt::format("\nAt rest, of one node in an hour, from {:.0f} s in which heartbeats, bookmarks and the ends of "
                      "watches came {} times as often:\n\n{}\nOf all nodes:\n\n{}",
                      result.rest.seconds, options.haste, table_of(rest), table_of(all)) +
          fmt::format("\nIn each second:\n\nlists after the start: {}\nconnections turned away in the outage: {}\n"
                      "watches after the outage: {}\nwatches after the server ended all: {}\n",
                      seconds_of(result.start, Call::List), fmt::join(result.outage.turned_away, " "),
                      seconds_of(result.back, Call::Watch), seconds_of(result.ended, Call::Watch)) +
          fmt::format("\n{} evictions: {} statuses and {} events told, {} of them again.\n", result.evictions,
                      told.statuses, told.events, told.again)};
}

void add_cluster(Commands& commands) {
  commands.add(
      {"cluster", "what many evictds cost one API server, at rest and when all is not well"},
      +[](const ClusterOptions& options) {
        auto bounded = options;
        bounded.evictions = std::min(options.evictions, options.pods);
        return report_of(measure_cluster(bounded), bounded);
      },
      [](auto& command, auto& options) {
        number(command, "--nodes", options.nodes, "each takes 4 open files", 1, 10'000);
        number(command, "--pods", options.pods, "of each node", 1, 500);
        number(command, "--evictions", options.evictions, "of each node in the storm; at most its pods", 1, 500);
      },
      alone);
}

}  // namespace bench
