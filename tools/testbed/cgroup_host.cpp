#include "testbed/cgroup_host.hpp"

#include <mntent.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <sstream>
#include <string>
#include <system_error>

#include "testbed/failure.hpp"
#include "testbed/files.hpp"
#include "testbed/process_table.hpp"
#include "testbed/wait.hpp"

namespace testbed {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

/// A cgroup and those below it, the innermost first: the order in which they can be removed.
std::vector<fs::path> tree(const fs::path& directory) {
  std::vector<fs::path> result;
  std::error_code gone;
  for (fs::recursive_directory_iterator entry(directory, gone), end; !gone && entry != end; entry.increment(gone)) {
    if (entry->is_directory(gone)) result.push_back(entry->path());
  }
  result.insert(result.begin(), directory);
  std::ranges::reverse(result);
  return result;
}

void remove_tree(const fs::path& directory) {
  if (!fs::exists(directory)) return;
  // A frozen v1 cgroup does not even die. runc freezes one for a moment, and may itself be killed just then.
  for (const auto& cgroup : tree(directory)) {
    std::error_code ignored;
    if (fs::exists(cgroup / "freezer.state", ignored)) write_file(cgroup / "freezer.state", "THAWED");
  }
  kill_all([&] { return processes_in_cgroup(directory); });
  // The kernel lets go of a dead process's cgroup a little after the process is no longer listed.
  wait_until("the cgroup " + directory.native() + " can be removed", 30s, [&] {
    for (const auto& cgroup : tree(directory)) ::rmdir(cgroup.c_str());
    return !fs::exists(directory);
  });
}

}  // namespace

std::optional<CgroupHost> find_cgroup_host() {
  const std::unique_ptr<FILE, decltype(&::endmntent)> table{::setmntent("/proc/self/mounts", "re"), ::endmntent};
  if (!table) fail_errno("/proc/self/mounts");
  CgroupHost host;
  while (const mntent* mount = ::getmntent(table.get())) {
    const std::string type = mount->mnt_type;
    const fs::path root = mount->mnt_dir;
    if (type != "cgroup" && type != "cgroup2") continue;
    host.hierarchies.push_back(root);
    const bool unified = type == "cgroup2";
    const auto has = [&](const char* controller) {
      // No controller's name is part of another's.
      return unified ? try_read_file(root / "cgroup.controllers").value_or("").contains(controller)
                     : ::hasmntopt(mount, controller) != nullptr;
    };
    if (has("memory")) {
      host.memory = root;
      host.v2 = unified;
    }
    if (has("pids")) host.pids = root;
  }
  if (host.memory.empty() || host.pids.empty()) return std::nullopt;
  return host;
}

const CgroupHost& cgroup_host() {
  static const auto host = find_cgroup_host();
  if (!host) fail("no cgroup hierarchy has the memory controller, or none has the pids controller");
  return *host;
}

std::vector<pid_t> processes_in_cgroup(const fs::path& directory) {
  std::vector<pid_t> result;
  for (const auto& cgroup : tree(directory)) {
    std::istringstream pids(try_read_file(cgroup / "cgroup.procs").value_or(""));
    for (pid_t pid = 0; pids >> pid;) {
      if (pid > 0) result.push_back(pid);  // 0 is a process of a foreign PID namespace; killing 0 kills ourselves
    }
  }
  return result;
}

void remove_cgroups(std::string_view name) {
  for (const auto& hierarchy : cgroup_host().hierarchies) remove_tree(hierarchy / name);
}

}  // namespace testbed
