// A signal that evictd does not have goes all the way by its row and its reader (toy_signal/open_files.hpp): nothing of
// src or tools knows its name.

#include <doctest/doctest.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <sstream>

#include "agent/describe.hpp"
#include "agent/node_observer.hpp"
#include "agent/pod_ranking.hpp"
#include "core/eviction_order.hpp"
#include "core/eviction_settings.hpp"
#include "evictctl/answers.hpp"
#include "fixture/guard.hpp"
#include "fixture/node_tree.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"
#include "metrics/exposition.hpp"
#include "toy_signal/open_files.hpp"
#include "wake/gauges.hpp"
#include "wake/sampler.hpp"

namespace evictd::test {
namespace {

using namespace std::chrono_literals;
using fixture::file;
using fixture::Lines;
using fixture::operator""_GiB;

/// A node on which 300 of 1000 files are open.
struct Node {
  fixture::Tree tree{fixture::v1_node({.total = 8_GiB, .free = 4_GiB, .available = 4_GiB}, {}, {})};
  config::NodeSettings settings = fixture::settings_for(tree);
  node::CgroupHierarchy hierarchy = fixture::value_of(node::CgroupHierarchy::detect(settings.cgroup_mount));
  node::NodeMemory memory = fixture::value_of(node::NodeMemory::open(hierarchy, settings));
  boost::asio::io_context reactor{1};
  node::NodeDisk disk{reactor.get_executor(), settings};
  OpenFiles files{tree.path("proc/file-nr")};

  Node() { open(300); }
  void open(int count) { tree.write("proc/file-nr", std::to_string(count) + "\t0\t1000\n"); }
};

core::PodUsage processes(std::int64_t count) { return {.processes = count}; }

v1::NodeStatus status_of(const core::Observation& observation, const core::Threshold& threshold) {
  v1::NodeStatus status;
  auto& signal = *status.add_signals();
  signal.set_signal(std::string(core::name(files_available)));
  signal.set_unit(std::string(core::unit_of(files_available)));
  signal.set_available(observation.available);
  signal.set_capacity(observation.capacity);
  *signal.add_thresholds()->mutable_threshold() = agent::describe_threshold(threshold, observation.capacity);
  return status;
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a new signal is configured as the others are, and bad values are refused as theirs are") {
  CHECK(core::parse_signal("files.available") == files_available);
  CHECK(core::signal_names().back() == "files.available");
  using BySignal = core::EvictionSettings::BySignal;
  core::EvictionSettings settings;
  settings.hard = BySignal{{"files.available", "10%"}};
  const auto policy = fixture::value_of(core::make_policy(settings));
  REQUIRE(policy.thresholds.size() == 1);
  CHECK(policy.thresholds[0].signal == files_available);
  settings.hard = BySignal{{"files.available", "much"}};
  CHECK(has(fixture::error_of(core::make_policy(settings)), "files.available"));
}

TEST_CASE("a new signal is read along with the others, and what is wrong with it stops none of them") {
  Node node;
  const std::array<node::SignalReader*, 2> readers{&node.disk, &node.files};
  agent::NodeObserver observer{node.memory, node.disk, readers};
  const core::Instant now{5s};
  const auto seen = fixture::value_of(observer.read(now)).observations;
  CHECK(seen[files_available] == core::Observation{.available = 700, .capacity = 1000, .time = now});

  node.tree.write("proc/file-nr", "nothing\n");
  const auto without = fixture::value_of(observer.read(now)).observations;
  CHECK_FALSE(without[files_available]);
  CHECK(without[core::Signal::MemoryAvailable]);
}

TEST_CASE("a new signal is sampled between passes, and crossing its threshold wakes one") {
  Node node;
  const std::array<node::SignalProbe*, 2> probes{&node.memory, &node.files};
  wake::Wakes wakes{node.reactor.get_executor()};
  wake::Sampler sampler{node.reactor.get_executor(), wakes, wake::make_gauges(probes, {}, 10s)};
  wake::Arming arming;
  arming.levels = {{files_available, true, 100, 700}};
  arming.time = std::chrono::steady_clock::now();
  sampler.arm(arming);
  CHECK(sampler.status().front().name == "sampler files.available");
  node.open(950);
  std::string detail;
  boost::asio::co_spawn(
      node.reactor,
      [&]() -> boost::asio::awaitable<void> {
        const auto wake = co_await wakes.next();
        detail = wake.reasons.front().detail;
      },
      boost::asio::detached);
  while (detail.empty()) REQUIRE(node.reactor.run_one_for(30s) > 0);
  CHECK(detail == "files.available<100");
}

TEST_CASE("where a new signal is short the pod goes that its row ranks first, for the reason that its row names") {
  fixture::Guard guard{fixture::policy({fixture::threshold(files_available, "100")}),
                       fixture::pods({fixture::pod("quiet"), fixture::pod("busy")})};
  CHECK(guard.pass(0s, fixture::observed({{files_available, 500, 1000}})) == Lines{});
  (void)guard.pass(1s, fixture::observed({{files_available, 50, 1000}}));
  CHECK(guard.reading().measure == core::Measure::Processes);
  CHECK(guard.synchronizer().conditions() == core::NodeConditions{core::NodeCondition::PidPressure});
  (void)guard.measured({{"quiet", processes(3)}, {"busy", processes(300)}});
  const auto evicted = std::ranges::find_if(
      guard.actions(), [](const core::Action& action) { return std::holds_alternative<core::Eviction>(action); });
  REQUIRE(evicted != guard.actions().end());
  const auto& eviction = std::get<core::Eviction>(*evicted);
  CHECK(eviction.pod->name == "busy");
  CHECK(eviction.message.text.starts_with("The node was low on resource: open-files. "));
  CHECK(agent::why(files_available, {.ranked = core::ranked(files_available, eviction.pod, processes(300), {})}) ==
        "runs 300 processes");
}

TEST_CASE("a new signal is shown by evictctl and in the metrics, in its unit") {
  const auto status = status_of({.available = 700, .capacity = 1000}, fixture::threshold(files_available, "100"));
  std::ostringstream table;
  ctl::print_status(table, status, {.width = 100}, ctl::TimePoint{});
  INFO(table.str());
  CHECK(has(table.str(), "files.available  "));
  CHECK(has(table.str(), " 700 "));

  metrics::Exposition exposition;
  const auto text = exposition.text({.node = status});
  CHECK(has(text, "evictd_signal_available_files{signal=\"files.available\"} 700\n"));
  CHECK(has(text, "evictd_signal_threshold_files{signal=\"files.available\",kind=\"hard\"} 100\n"));
}

}  // namespace evictd::test
