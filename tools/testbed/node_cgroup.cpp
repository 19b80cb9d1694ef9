#include "testbed/node_cgroup.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "os/numbers.hpp"
#include "testbed/cgroup_host.hpp"
#include "testbed/failure.hpp"
#include "testbed/files.hpp"
#include "testbed/leftovers.hpp"

namespace testbed {

namespace fs = std::filesystem;
using evictd::core::QosClass;

namespace {

/// On v2 a cgroup has only the controllers that the one above hands down. The runtime sees to those it needs beside
/// these two.
void hand_down_controllers(const fs::path& directory) {
  write_file(directory / "cgroup.subtree_control", "+memory +pids");
}

}  // namespace

NodeCgroup::NodeCgroup()
    : cgroup_("/" + unique_name()),
      memory_capacity_(std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE)) {}

NodeCgroup::NodeCgroup(const Options& options) : NodeCgroup() {
  remove_leftovers();
  const bool v2 = cgroup_host().v2;
  if (v2) hand_down_controllers(cgroup_host().memory);
  make(cgroup_);
  if (options.memory_limit) {
    memory_capacity_ = std::min(*options.memory_limit, memory_capacity_);
    write_file(memory_directory() / (v2 ? "memory.max" : "memory.limit_in_bytes"),
               fmt::format("{}", *options.memory_limit));
  }
  if (options.pids_limit) write_file(pids_directory() / "pids.max", fmt::format("{}", *options.pids_limit));
  for (const char* below : {"/kubepods", "/kubepods/burstable", "/kubepods/besteffort"}) make(cgroup_ + below);
}

NodeCgroup::~NodeCgroup() {
  report_failure([&] { remove_cgroups(cgroup_.substr(1)); });
}

void NodeCgroup::make(std::string_view cgroup) const {
  fs::create_directory(memory_directory(cgroup));
  fs::create_directory(pids_directory(cgroup));  // the same one on v2, where this does nothing
  if (cgroup_host().v2) hand_down_controllers(memory_directory(cgroup));
}

std::string NodeCgroup::pod_cgroup(QosClass qos, std::string_view uid) const {
  const std::string_view level = qos == QosClass::Burstable    ? "burstable/"
                                 : qos == QosClass::BestEffort ? "besteffort/"
                                                               : "";
  return fmt::format("{}/kubepods/{}pod{}", cgroup_, level, uid);
}

fs::path NodeCgroup::memory_directory(std::string_view cgroup) const { return cgroup_host().memory / cgroup.substr(1); }

fs::path NodeCgroup::pids_directory(std::string_view cgroup) const { return cgroup_host().pids / cgroup.substr(1); }

std::int64_t NodeCgroup::memory_usage(std::string_view cgroup) const {
  return read_number(memory_directory(cgroup) / (cgroup_host().v2 ? "memory.current" : "memory.usage_in_bytes"));
}

std::int64_t NodeCgroup::memory_stat(std::string_view cgroup, std::string_view row) const {
  const auto wanted = fmt::format("{}{}", cgroup_host().v2 ? "" : "total_", row);
  return evictd::os::find_number(read_file(memory_directory(cgroup) / "memory.stat"), wanted).value_or(0);
}

std::vector<pid_t> NodeCgroup::processes(std::string_view cgroup) const {
  return processes_in_cgroup(memory_directory(cgroup));
}

}  // namespace testbed
