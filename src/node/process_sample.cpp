#include "node/process_sample.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <string>
#include <utility>

#include "os/directory.hpp"
#include "os/numbers.hpp"

namespace evictd::node {
namespace {

/// What one reading of cgroup.procs says; a number that is cut off at its end is left out.
void append_first(const os::Directory& cgroup, std::size_t most, ProcessSample& sample) {
  const auto file = cgroup.file("cgroup.procs");
  if (!file) return;  // gone, or a threaded cgroup of v2, whose processes are listed further up
  std::array<char, 4096> buffer;
  ssize_t count = 0;
  do count = ::read(file->descriptor(), buffer.data(), buffer.size());
  while (count < 0 && errno == EINTR);
  if (count <= 0) return;
  std::string_view text(buffer.data(), static_cast<std::size_t>(count));
  for (auto end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    if (most-- == 0) {
      sample.complete = false;
      return;
    }
    // 0 stands for a process that this pid namespace does not see.
    const auto pid = os::parse_number(text.substr(0, end));
    if (pid && *pid > 0) sample.pids.push_back(static_cast<pid_t>(*pid));
    text.remove_prefix(end + 1);
  }
  if (static_cast<std::size_t>(count) == buffer.size()) sample.complete = false;
}

std::vector<std::string> first_below(const os::Directory& cgroup, ProcessSample& sample) {
  std::size_t entries_left = 512;  // a cgroup has some 60 files of its own
  std::vector<std::string> names;
  auto opened = cgroup.subdirectory("");
  if (!opened) return names;
  const auto all = os::list_directories(opened->take_descriptor(), cgroup.path(), entries_left, names);
  if (!all || !*all) sample.complete = false;
  std::ranges::sort(names);
  return names;
}

}  // namespace

os::FileResult<ProcessSample> sample_processes(const CgroupHierarchy& hierarchy, std::string_view cgroup,
                                               std::size_t from_each, std::size_t cgroups) {
  auto root = hierarchy.memory(cgroup);
  if (!root) return std::unexpected(root.error());
  return sample_processes(*std::move(root), from_each, cgroups);
}

ProcessSample sample_processes(os::Directory cgroup, std::size_t from_each, std::size_t cgroups) {
  ProcessSample sample;
  std::deque<os::Directory> pending;
  pending.push_back(std::move(cgroup));
  std::size_t found = 1;
  while (!pending.empty()) {
    const auto directory = std::move(pending.front());
    pending.pop_front();
    append_first(directory, from_each, sample);
    for (const auto& name : first_below(directory, sample)) {
      if (found++ >= cgroups) {
        sample.complete = false;
        break;
      }
      if (auto child = directory.subdirectory(name)) pending.push_back(*std::move(child));
    }
  }
  return sample;
}

}  // namespace evictd::node
