#include "benchmarks/soak/verdict.hpp"

#include <fmt/format.h>

#include <boost/json/value_from.hpp>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "testbed/mounts.hpp"
#include "testbed/wait.hpp"

namespace bench::soak {

namespace fs = std::filesystem;
namespace json = boost::json;
using namespace std::chrono_literals;

namespace {

// By how much evictd may have grown between the quarters that a Trend compares: it may use a cache that it did not need
// before, and gRPC lets go of threads at its leisure.
constexpr double more_mib = 2;
constexpr double more_of_memory = 0.1;  // beside those
constexpr double more_threads = 4;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool memory_tells = false;
#else
constexpr bool memory_tells = true;
#endif

void check_flat(std::string_view what, const std::optional<Trend>& trend, double allowed, Findings& findings) {
  if (!trend || trend->last <= trend->first + allowed) return;
  findings.add(
      fmt::format("{} grew: {:.1f} in the first quarter after the warm-up, {:.1f} in the last ({:+.1f} an hour)", what,
                  trend->first, trend->last, trend->per_hour));
}

std::vector<std::string> directories_in(const fs::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory))
    if (entry.is_directory()) names.push_back(entry.path().filename());
  return names;
}

}  // namespace

json::object judge_evictions(const std::vector<Eviction>& evictions, Findings& findings) {
  int wrong_victims = 0;
  int failed_steps = 0;  // the evictions went on without them
  for (const auto& eviction : evictions) {
    failed_steps += eviction.failed_steps;
    if (const auto wrong = flaw(eviction); !wrong.empty()) findings.add(wrong);
    if (may_go(eviction.pod)) continue;
    ++wrong_victims;
    findings.add(fmt::format("{} was evicted, which had not to go", eviction.pod));
  }
  return {{"all", evictions.size()}, {"wrongVictims", wrong_victims}, {"failedSteps", failed_steps}};
}

json::object judge_growth(std::span<const Sample> samples, double warm_up_minutes, Findings& findings) {
  const auto memory = trend(samples, &Sample::resident_mib, warm_up_minutes);
  const auto files = trend(samples, &Sample::files, warm_up_minutes);
  const auto threads = trend(samples, &Sample::threads, warm_up_minutes);
  if (memory_tells && memory)
    check_flat("memory (RSS, MiB)", memory, more_mib + more_of_memory * memory->first, findings);
  check_flat("threads", threads, more_threads, findings);
  const auto told = [](const std::optional<Trend>& of) { return of ? json::value_from(*of) : json::value(nullptr); };
  return {{"residentMiB", told(memory)}, {"descriptors", told(files)}, {"threads", told(threads)}};
}

std::map<std::string, int> descriptors_of(pid_t process) {
  std::map<std::string, int> counts;
  for (const auto& entry : fs::directory_iterator(fmt::format("/proc/{}/fd", process))) {
    std::error_code closed;
    const auto target = fs::read_symlink(entry.path(), closed).filename().native();
    if (!closed) ++counts[target.starts_with("socket:") ? "socket" : target];
  }
  return counts;
}

std::string difference(std::map<std::string, int> before, const std::map<std::string, int>& after) {
  std::string text;
  for (const auto& [what, count] : after)
    if (const int more = count - std::exchange(before[what], 0); more != 0)
      text += fmt::format("{}{} {:+}", text.empty() ? "" : ", ", what, more);
  for (const auto& [what, count] : before)
    if (count != 0) text += fmt::format("{}{} {:+}", text.empty() ? "" : ", ", what, -count);
  return text;
}

void look_for_leftovers(testbed::Testbed& testbed, Findings& findings) {
  if (const auto left = testbed.cri().sandboxes(); !left.empty())
    findings.add(fmt::format("{} sandboxes are left", left.size()));
  if (const auto left = testbed.cri().containers(); !left.empty())
    findings.add(fmt::format("{} containers are left", left.size()));
  const auto pods = testbed.node().memory_directory(testbed.node().cgroup() + "/kubepods");
  for (const auto& directory : {pods, pods / "burstable", pods / "besteffort"})
    for (const auto& name : directories_in(directory))
      if (name.starts_with("pod")) findings.add(fmt::format("the cgroup {} is left", (directory / name).native()));
  const auto nothing_mounted = [&] { return testbed::mounts_below(testbed.directory()).empty(); };
  if (!testbed::comes_true(10s, nothing_mounted))
    findings.add(fmt::format("{} is still mounted", testbed::mounts_below(testbed.directory()).front().native()));
}

void look_for_cgroups_of_evictd(testbed::Testbed& testbed, Findings& findings) {
  for (const auto& name : directories_in(testbed.node().memory_directory()))
    if (name != "kubepods") findings.add(fmt::format("evictd has left the cgroup {}", name));
}

}  // namespace bench::soak
