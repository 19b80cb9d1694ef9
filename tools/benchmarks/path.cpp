#include "benchmarks/path.hpp"

#include <fmt/format.h>
#include <sys/syscall.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/commands.hpp"
#include "benchmarks/crowd.hpp"
#include "benchmarks/scene.hpp"
#include "testbed/agent.hpp"
#include "testbed/failure.hpp"
#include "testbed/testbed.hpp"

namespace bench {

using evictd::v1::Event;

namespace {

struct PathOptions {
  int trials = 5;  ///< evictions at each size, each by an evictd of its own
  std::vector<std::size_t> pods{5, 110};
};

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

/// Of one eviction: lists of one.
Row figures(const PathStage& stage) {
  constexpr std::string_view two = "{median:.0f}/{max:.0f}";
  const auto one = [](auto number) { return std::vector{static_cast<double>(number)}; };
  return {{"calls", "calls", one(stage.calls), two},
          {"opened", "opened", one(stage.opened), two},
          {"listed", "listed", one(stage.listed), two},
          {"instructions", "instructions", stage.instructions ? one(*stage.instructions) : std::vector<double>{},
           "{median:.0f}"},
          {"longestGapUs", "longest gap us", std::vector{static_cast<double>(stage.longest_gap.count()) / 1e3}, two}};
}

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
  std::vector<Row> rows(path_stages.size() + 1);
  for (int number = 1; number <= evictions; ++number) {
    const auto path = evict_one(testbed, crowd);
    const auto all = together(path);
    for (std::size_t i = 0; i < path.size(); ++i) add(rows[i], figures(path[i]));
    add(rows.back(), figures(all));
    progress(fmt::format("{} pods, eviction {}/{}: {} system calls", pods, number, evictions, all.calls));
  }
  for (std::size_t i = 0; i < rows.size(); ++i)
    rows[i] = joined({{"", "pods", pods}, {"", "until", i < path_stages.size() ? path_stages[i] : "all"}},
                     summarized(std::move(rows[i])));
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

namespace {

/// Counts by ptrace(2) and perf_event_open(2). Traced, evictd is slower by far, so no times are told but the gaps.
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

}  // namespace

void add_path(Commands& commands) {
  commands.add(
      {"path",
       "what evictd does from its wake-up to the first signal: system calls, instructions, the longest gap, by stage",
       "evictions at each size"},
      measure_path,
      [](auto& command, auto& options) { number(command, "--pods", options.pods, "the sizes", 1, 5000); });
}

}  // namespace bench
