#include "benchmarks/path.hpp"

#include <fmt/format.h>
#include <sys/syscall.h>

#include <algorithm>
#include <boost/json.hpp>
#include <thread>
#include <utility>

#include "benchmarks/crowd.hpp"
#include "benchmarks/scene.hpp"
#include "benchmarks/variant.hpp"
#include "testbed/agent.hpp"
#include "testbed/failure.hpp"
#include "testbed/files.hpp"
#include "testbed/testbed.hpp"

namespace bench {

namespace json = boost::json;
using namespace std::chrono_literals;
using evictd::v1::Event;

namespace {

PathTimes times_of(const Event& cleanup) {
  const std::chrono::steady_clock::time_point woken{std::chrono::nanoseconds{cleanup.wake().monotonic_ns()}};
  PathTimes times{.woken = woken};
  for (std::size_t i = 0; i < times.ends.size(); ++i) {
    const auto stage = cleanup.stages().find(std::string(path_stages[i]));
    if (stage == cleanup.stages().end()) testbed::fail(fmt::format("no stage \"{}\" in the event", path_stages[i]));
    // It is told in whole microseconds, cut off.
    times.ends[i] = woken + std::chrono::microseconds{stage->second + 1};
  }
  return times;
}

Path evict_one(testbed::Testbed& testbed, Crowd& crowd, std::size_t others, int number) {
  const auto name = fmt::format("victim-{}", number);
  const auto file = testbed.directory() / name;
  testbed::replace_file(file, "8Mi");
  crowd.add_victim(name, file);
  std::optional<Path> path;
  {
    testbed::Agent agent{testbed, agent_options(Variant::fast, std::string(Crowd::thresholds))};
    agent.wait_for_pods(others + 1);
    std::this_thread::sleep_for(500ms);  // what its start stirred up is over
    const testbed::TracedCalls traced{agent.process().pid()};
    testbed::replace_file(file, Crowd::growth);
    const auto cleanup = agent.events().wait_for(Event::CLEANUP_DONE, "default/" + name, 60s);
    path = path_of(traced.all(), times_of(cleanup));
  }
  crowd.remove(name);
  if (!path) testbed::fail("no process was signalled by evictd itself");
  return *path;
}

/// As doubles, to be summed up over evictions.
struct Values {
  void add(const PathStage& stage) {
    calls.push_back(static_cast<double>(stage.calls));
    opened.push_back(static_cast<double>(stage.opened));
    listed.push_back(static_cast<double>(stage.listed));
    if (stage.instructions) instructions.push_back(static_cast<double>(*stage.instructions));
    gaps.push_back(static_cast<double>(stage.longest_gap.count()) / 1e3);
  }
  [[nodiscard]] PathResult::Stage summary() const {
    PathResult::Stage stage{.calls = summarize(calls), .opened = summarize(opened), .listed = summarize(listed)};
    if (!instructions.empty()) stage.instructions = summarize(instructions);
    stage.longest_gap_us = summarize(gaps);
    return stage;
  }

  std::vector<double> calls, opened, listed, instructions, gaps;
};

PathStage together(const Path& path) {
  PathStage all;
  for (const auto& stage : path) {
    all.calls += stage.calls;
    all.opened += stage.opened;
    all.listed += stage.listed;
    all.instructions =
        all.instructions && stage.instructions ? std::optional(*all.instructions + *stage.instructions) : std::nullopt;
    all.longest_gap = std::max(all.longest_gap, stage.longest_gap);
  }
  return all;
}

PathResult measure_at(std::size_t pods, int evictions) {
  testbed::Testbed testbed{{.start_containerd = false}};
  const auto others = pods - 1;
  Crowd crowd{testbed, others};
  crowd.leave_free(Crowd::free_memory);
  std::array<Values, path_stages.size()> values;
  Values all;
  for (int number = 1; number <= evictions; ++number) {
    const auto path = evict_one(testbed, crowd, others, number);
    for (std::size_t i = 0; i < path.size(); ++i) values[i].add(path[i]);
    all.add(together(path));
    progress(fmt::format("{} pods, eviction {}/{}: {} system calls", pods, number, evictions, together(path).calls));
  }
  PathResult result{.pods = pods, .together = all.summary()};
  for (std::size_t i = 0; i < values.size(); ++i) result.stages[i] = values[i].summary();
  return result;
}

json::object as_json(const PathResult::Stage& stage) {
  const auto numbers = [](const Summary& s) {
    return json::object{{"median", s.median}, {"p90", s.p90}, {"max", s.max}};
  };
  json::object object{{"calls", numbers(stage.calls)},
                      {"opened", numbers(stage.opened)},
                      {"listed", numbers(stage.listed)},
                      {"longestGapUs", numbers(stage.longest_gap_us)}};
  if (stage.instructions) object["instructions"] = numbers(*stage.instructions);
  return object;
}

}  // namespace

std::optional<Path> path_of(std::span<const testbed::TracedCall> calls, const PathTimes& times) {
  const auto signal = std::ranges::find(calls, std::uint64_t{SYS_pidfd_send_signal}, &testbed::TracedCall::number);
  if (signal == calls.end()) return std::nullopt;
  auto call = std::find_if(calls.begin(), signal, [&](const auto& later) { return later.begin > times.woken; });
  if (call != calls.begin()) --call;
  Path path;
  for (auto before = call; call <= signal; before = call++) {
    const auto ended = std::ranges::count_if(times.ends, [&](const auto& end) { return end <= call->begin; });
    auto& stage = path[static_cast<std::size_t>(ended)];
    ++stage.calls;
    stage.opened += call->number == SYS_openat ? 1 : 0;
    stage.listed += call->number == SYS_getdents64 ? 1 : 0;
    if (!call->instructions || !before->instructions)
      stage.instructions.reset();
    else if (stage.instructions)
      *stage.instructions += *call->instructions - *before->instructions;
    if (call != before) stage.longest_gap = std::max(stage.longest_gap, call->begin - before->end);
  }
  return path;
}

std::vector<PathResult> measure_path(const PathOptions& options) {
  std::vector<PathResult> results;
  for (const auto pods : options.pods) results.push_back(measure_at(pods, options.evictions));
  return results;
}

std::string path_table(const std::vector<PathResult>& results, const PathOptions& options) {
  constexpr std::string_view row = "{:>5} {:<10} {:>12} {:>12} {:>12} {:>14} {:>16}\n";
  auto table = fmt::format(
      "From evictd's wake-up to its first signal, median/max of {} evictions at each size. The runtime is a stand-in.\n"
      "evictd is traced, so a gap between two calls includes some microseconds of that.\n\n",
      options.evictions);
  table += fmt::format(row, "pods", "until", "calls", "opened", "listed", "instructions", "longest gap us");
  const auto two = [](const Summary& s) { return fmt::format("{:.0f}/{:.0f}", s.median, s.max); };
  const auto add = [&](std::size_t pods, std::string_view name, const PathResult::Stage& stage) {
    table += fmt::format(row, pods, name, two(stage.calls), two(stage.opened), two(stage.listed),
                         stage.instructions ? fmt::format("{:.0f}", stage.instructions->median) : "not told",
                         two(stage.longest_gap_us));
  };
  for (const auto& result : results) {
    for (std::size_t i = 0; i < path_stages.size(); ++i) add(result.pods, path_stages[i], result.stages[i]);
    add(result.pods, "all", result.together);
  }
  return table;
}

std::string path_json(const std::vector<PathResult>& results) {
  json::array rows;
  for (const auto& result : results) {
    json::object stages;
    for (std::size_t i = 0; i < path_stages.size(); ++i) stages[path_stages[i]] = as_json(result.stages[i]);
    rows.push_back(
        json::object{{"pods", result.pods}, {"stages", std::move(stages)}, {"all", as_json(result.together)}});
  }
  return json::serialize(json::object{{"bench", "path"}, {"results", std::move(rows)}});
}

}  // namespace bench
