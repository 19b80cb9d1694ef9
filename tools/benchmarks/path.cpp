#include "benchmarks/path.hpp"

#include <fmt/format.h>
#include <sys/syscall.h>

#include <algorithm>
#include <string>
#include <vector>

#include "benchmarks/benches.hpp"
#include "benchmarks/crowd.hpp"
#include "benchmarks/scene.hpp"
#include "benchmarks/variant.hpp"
#include "testbed/agent.hpp"
#include "testbed/failure.hpp"
#include "testbed/testbed.hpp"

namespace bench {

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

Path evict_one(testbed::Testbed& testbed, Crowd& crowd) {
  const Crowd::Victim victim{crowd};
  testbed::Agent agent{testbed, agent_options(Variant::fast, std::string(Crowd::thresholds))};
  victim.wait_until_known(agent);
  const testbed::TracedCalls traced{agent.process().pid()};
  const auto cleanup = victim.grow(agent);
  const auto path = path_of(traced.all(), times_of(cleanup));
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
  /// Of a stage of all evictions at one size.
  [[nodiscard]] Row figures(std::size_t pods, std::string_view until) const {
    constexpr std::string_view two = "{median:.0f}/{max:.0f}";
    Row row{{"", "pods", pods},
            {"", "until", until},
            {"calls", "calls", summarize(calls), two},
            {"opened", "opened", summarize(opened), two},
            {"listed", "listed", summarize(listed), two}};
    if (instructions.empty())
      row.emplace_back("", "instructions", "not told");
    else
      row.emplace_back("instructions", "instructions", summarize(instructions), "{median:.0f}");
    row.emplace_back("longestGapUs", "longest gap us", summarize(gaps), two);
    return row;
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

/// A row for each stage, and one for all.
std::vector<Row> measure_at(std::size_t pods, int evictions) {
  testbed::Testbed testbed{{.start_containerd = false}};
  Crowd crowd{testbed, pods - 1};
  crowd.leave_free(Crowd::free_memory);
  std::array<Values, path_stages.size()> values;
  Values all;
  for (int number = 1; number <= evictions; ++number) {
    const auto path = evict_one(testbed, crowd);
    for (std::size_t i = 0; i < path.size(); ++i) values[i].add(path[i]);
    all.add(together(path));
    progress(fmt::format("{} pods, eviction {}/{}: {} system calls", pods, number, evictions, together(path).calls));
  }
  std::vector<Row> rows;
  for (std::size_t i = 0; i < values.size(); ++i) rows.push_back(values[i].figures(pods, path_stages[i]));
  rows.push_back(all.figures(pods, "all"));
  return rows;
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

Report measure_path(const PathOptions& options) {
  std::vector<Row> all;
  std::vector<Row> results;
  for (const auto pods : options.pods) {
    const auto rows = measure_at(pods, options.trials);
    all.insert(all.end(), rows.begin(), rows.end());
    boost::json::object stages;
    for (std::size_t i = 0; i < path_stages.size(); ++i) stages[path_stages[i]] = json_of(rows[i]);
    results.push_back({{"pods", pods}, {"stages", stages}, {"all", json_of(rows.back())}});
  }
  return {.json = results_of("path", results),
          .text = fmt::format("From evictd's wake-up to its first signal, median/max of {} evictions at each size. The "
                              "runtime is a stand-in.\nevictd is traced, so a gap between two calls includes some "
                              "microseconds of that.\n\n{}",
                              options.trials, table_of(all))};
}

}  // namespace bench
