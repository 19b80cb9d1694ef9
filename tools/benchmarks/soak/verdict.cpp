#include "benchmarks/soak/verdict.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "benchmarks/soak/samples.hpp"
#include "testbed/mounts.hpp"
#include "testbed/wait.hpp"

namespace bench::soak {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

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

void judge_evictions(const std::vector<Eviction>& evictions, Result& result, Findings& findings) {
  std::vector<double> kills;
  for (const auto& eviction : evictions) {
    ++result.evictions;
    result.failed_steps += eviction.failed_steps;
    if (eviction.kill_ms) kills.push_back(*eviction.kill_ms);
    if (const auto wrong = flaw(eviction); !wrong.empty()) findings.add(wrong);
    if (may_go(eviction.pod)) continue;
    ++result.wrong_victims;
    findings.add(fmt::format("{} was evicted, which had not to go", eviction.pod));
  }
  result.kill_ms = summarize(std::move(kills));
  result.dead_ms = summarize(result.hogs.dead_ms);
}

void judge_growth(Result& result, Findings& findings) {
  const auto warm_up = result.warm_up_minutes;
  result.resident_mib = trend(result.samples, &Sample::resident_mib, warm_up);
  result.files = trend(result.samples, &Sample::files, warm_up);
  result.threads = trend(result.samples, &Sample::threads, warm_up);
  if (memory_tells && result.resident_mib)
    check_flat("memory (RSS, MiB)", result.resident_mib,
               Tolerance::resident_mib + Tolerance::resident_share * result.resident_mib->first, findings);
  check_flat("threads", result.threads, Tolerance::threads, findings);
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
