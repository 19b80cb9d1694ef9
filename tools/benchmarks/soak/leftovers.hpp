#pragma once
#include <fmt/format.h>
#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>
#include <vector>

#include "benchmarks/soak/findings.hpp"
#include "testbed/mounts.hpp"
#include "testbed/testbed.hpp"
#include "testbed/wait.hpp"

// What must not be left over, or more than it was.
namespace bench::soak {

inline std::vector<std::string> directories_in(const std::filesystem::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    if (entry.is_directory()) names.push_back(entry.path().filename());
  return names;
}

/// How many descriptors a process has open on what: "socket", "memory.stat", "anon_inode", …
inline std::map<std::string, int> descriptors_of(pid_t process) {
  std::map<std::string, int> counts;
  for (const auto& entry : std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", process))) {
    std::error_code closed;
    const auto target = std::filesystem::read_symlink(entry.path(), closed).filename().native();
    if (!closed) ++counts[target.starts_with("socket:") ? "socket" : target];
  }
  return counts;
}

/// "socket +1, memory.stat -2"; empty: they are the same.
inline std::string difference(const std::map<std::string, int>& before, std::map<std::string, int> after) {
  for (const auto& [what, count] : before) after[what] -= count;
  std::string text;
  for (const auto& [what, more] : after)
    if (more != 0) text += fmt::format("{}{} {:+}", text.empty() ? "" : ", ", what, more);
  return text;
}

/// Sandboxes, containers, cgroups of pods and mounts, once there are no pods any more.
inline void look_for_leftovers(testbed::Testbed& testbed, Findings& findings) {
  if (const auto left = testbed.cri().sandboxes(); !left.empty())
    findings.add(fmt::format("{} sandboxes are left", left.size()));
  if (const auto left = testbed.cri().containers(); !left.empty())
    findings.add(fmt::format("{} containers are left", left.size()));
  const auto pods = testbed.node().memory_directory(testbed.node().cgroup() + "/kubepods");
  for (const auto& directory : {pods, pods / "burstable", pods / "besteffort"})
    for (const auto& name : directories_in(directory))
      if (name.starts_with("pod")) findings.add(fmt::format("the cgroup {} is left", (directory / name).native()));
  const auto nothing_mounted = [&] { return testbed::mounts_below(testbed.directory()).empty(); };
  if (!testbed::comes_true(std::chrono::seconds{10}, nothing_mounted))
    findings.add(fmt::format("{} is still mounted", testbed::mounts_below(testbed.directory()).front().native()));
}

/// Once evictd has ended.
inline void look_for_cgroups_of_evictd(testbed::Testbed& testbed, Findings& findings) {
  for (const auto& name : directories_in(testbed.node().memory_directory()))
    if (name != "kubepods") findings.add(fmt::format("evictd has left the cgroup {}", name));
}

}  // namespace bench::soak
