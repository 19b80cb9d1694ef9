#include "testbed/leftovers.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <set>
#include <string>

#include "os/numbers.hpp"
#include "testbed/cgroup_host.hpp"
#include "testbed/failure.hpp"
#include "testbed/work_directory.hpp"

namespace testbed {

namespace fs = std::filesystem;

namespace {

/// What names of this PID namespace begin with, as lsns(8) numbers it: another one's pids say nothing here.
std::string prefix_here() {
  struct stat here{};
  if (::stat("/proc/self/ns/pid", &here) != 0) fail_errno("/proc/self/ns/pid");
  return fmt::format("evictd-test-{}-", here.st_ino);
}

/// The names of those right in a directory, if there is one.
std::set<std::string> leftovers_in(const fs::path& directory) {
  std::set<std::string> names;
  if (!fs::exists(directory)) return names;
  for (const auto& entry : fs::directory_iterator(directory))
    if (is_leftover(entry.path().filename().native())) names.insert(entry.path().filename());
  return names;
}

}  // namespace

std::string prefix_of(pid_t owner) { return fmt::format("{}{}-", prefix_here(), owner); }

std::string unique_name() {
  static std::atomic<int> last = 0;
  return fmt::format("{}{}", prefix_of(::getpid()), ++last);
}

bool is_leftover(std::string_view name) {
  const auto prefix = prefix_here();
  if (!name.starts_with(prefix)) return false;
  name.remove_prefix(prefix.size());
  const auto dash = name.find('-');
  const auto owner = evictd::os::parse_number(name.substr(0, dash)).value_or(0);
  return dash != std::string_view::npos && owner > 0 && ::kill(static_cast<pid_t>(owner), 0) != 0 && errno == ESRCH;
}

void remove_leftovers() {
  for (const auto& directory : {fs::canonical(fs::temp_directory_path()), fs::path("/dev/shm")})
    for (const auto& name : leftovers_in(directory)) report_failure([&] { remove_work_directory(directory / name); });
  std::set<std::string> cgroups;
  for (const auto& hierarchy : cgroup_host().hierarchies) cgroups.merge(leftovers_in(hierarchy));
  for (const auto& name : cgroups) report_failure([&] { remove_cgroups(name); });
}

}  // namespace testbed
