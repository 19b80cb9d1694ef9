#include "node/cgroup_processes.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "os/directory.hpp"
#include "os/numbers.hpp"

namespace evictd::node {
namespace {

/// Appends what cgroup.procs lists. Unlike a counter it comes in several records, so it is read to its end, or until it
/// has named a process where `first_only`: the list of a pod may have ten thousands of lines.
os::FileResult<void> append_processes(const os::Directory& cgroup, bool first_only, std::vector<pid_t>& pids) {
  const auto file = cgroup.file("cgroup.procs");
  if (!file) return std::unexpected(file.error());
  std::array<char, 4096> buffer;
  std::size_t kept = 0;  // the beginning of a number whose end is in the next piece
  for (;;) {
    const auto count = ::read(file->descriptor(), buffer.data() + kept, buffer.size() - kept);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::unexpected(os::system_error(errno, file->path()));
    if (count == 0) return {};
    std::string_view text(buffer.data(), kept + static_cast<std::size_t>(count));
    for (auto end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
      pid_t pid = 0;
      const auto [last, code] = std::from_chars(text.data(), text.data() + end, pid);
      if (code != std::errc{} || last != text.data() + end)
        return std::unexpected(os::content_error(file->path(), "lists something else than process ids"));
      pids.push_back(pid);
      text.remove_prefix(end + 1);
    }
    if (first_only && !pids.empty()) return {};
    if (text.size() == buffer.size()) return std::unexpected(os::content_error(file->path(), "holds no process ids"));
    std::memmove(buffer.data(), text.data(), text.size());
    kept = text.size();
  }
}

/// What may happen to any cgroup while a tree is walked: it vanishes, or it is a threaded one (v2), whose processes are
/// listed further up.
bool is_passed_over(const os::FileError& error) { return error.is_gone() || error.code == EOPNOTSUPP; }

/// All processes of the tree, or some of them as soon as there are any where `first_only`. `left_out`: see the header.
os::FileResult<std::vector<pid_t>> walk(const os::Directory& root, std::string_view left_out, bool first_only) {
  std::vector<pid_t> pids;
  std::vector<std::string> pending{""};
  while (!pending.empty()) {
    const auto name = std::move(pending.back());
    pending.pop_back();
    const auto directory = root.subdirectory(name);
    if (!directory && is_passed_over(directory.error())) continue;
    if (!directory) return std::unexpected(directory.error());
    if (const auto appended = append_processes(*directory, first_only, pids);
        !appended && !is_passed_over(appended.error()))
      return std::unexpected(appended.error());
    if (first_only && !pids.empty()) return pids;
    const auto below = directory->subdirectories();
    if (!below && is_passed_over(below.error())) continue;
    if (!below) return std::unexpected(below.error());
    for (const auto& child : *below)
      if (!name.empty())
        pending.push_back(fmt::format("{}/{}", name, child));
      else if (child != left_out)
        pending.push_back(child);
  }
  return pids;
}

}  // namespace

os::FileResult<std::vector<pid_t>> processes(const CgroupHierarchy& hierarchy, std::string_view cgroup,
                                             std::string_view left_out) {
  const auto directory = hierarchy.memory(cgroup);
  if (!directory) return std::unexpected(directory.error());
  auto pids = walk(*directory, left_out, false);
  if (!pids) return pids;
  // 0 stands for a process that this pid namespace does not see; to kill(2) it would mean ourselves.
  std::erase_if(*pids, [](pid_t pid) { return pid <= 0; });
  // A process that moved while the tree was walked may have been met twice.
  std::ranges::sort(*pids);
  pids->erase(std::ranges::unique(*pids).begin(), pids->end());
  return pids;
}

os::FileResult<std::int64_t> process_count(const CgroupHierarchy& hierarchy, std::string_view cgroup) {
  if (const auto directory = hierarchy.pids(cgroup))
    if (const auto file = directory->file("pids.current")) return file->read_number();
  const auto pids = processes(hierarchy, cgroup);
  if (!pids) return std::unexpected(pids.error());
  return static_cast<std::int64_t>(pids->size());
}

os::FileResult<bool> is_empty_or_gone(const CgroupHierarchy& hierarchy, std::string_view cgroup,
                                      std::string_view left_out) {
  const auto directory = hierarchy.memory(cgroup);
  if (!directory) {
    if (directory.error().is_gone()) return true;
    return std::unexpected(directory.error());
  }
  if (hierarchy.version() == CgroupVersion::v2 && left_out.empty()) {
    const auto file = directory->file("cgroup.events");
    if (file) return is_empty_or_gone(*file);
    if (file.error().is_gone()) return true;
    return std::unexpected(file.error());
  }
  const auto pids = walk(*directory, left_out, true);
  if (!pids) return std::unexpected(pids.error());
  return pids->empty();
}

os::FileResult<std::optional<os::KeptFile>> population_events(const CgroupHierarchy& hierarchy,
                                                              std::string_view cgroup) {
  if (hierarchy.version() == CgroupVersion::v1) return std::nullopt;
  const auto directory = hierarchy.memory(cgroup);
  if (!directory) return std::unexpected(directory.error());
  return directory->file("cgroup.events");
}

os::FileResult<bool> is_empty_or_gone(const os::KeptFile& population_events) {
  std::array<char, 256> buffer;
  const auto table = population_events.read(buffer);
  if (!table && table.error().is_gone()) return true;
  if (!table) return std::unexpected(table.error());
  if (const auto populated = os::find_number(*table, "populated")) return *populated == 0;
  return std::unexpected(os::content_error(population_events.path(), "no number behind \"populated\""));
}

}  // namespace evictd::node
