#include "node/cgroup_processes.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "os/directory.hpp"
#include "os/numbers.hpp"

namespace evictd::node {
namespace {

/// How much of a list is read: that of a pod may have ten thousands of lines, and on v1 comes in several records.
enum class Extent : std::uint8_t {
  all,
  first_record,  // until it has named a process
};

/// Appends what cgroup.procs lists, until there are more than `most`. It is opened for each reading: on v1 the kernel
/// keeps the list that an open file has begun with.
os::FileResult<void> append_processes(const os::KeptFile& file, Extent extent, std::vector<pid_t>& pids,
                                      std::size_t most = WalkLimit{}.processes) {
  std::array<char, 4096> buffer;
  std::size_t kept = 0;  // the beginning of a number whose end is in the next piece
  for (;;) {
    const auto count = ::read(file.descriptor(), buffer.data() + kept, buffer.size() - kept);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::unexpected(os::system_error(errno, file.path()));
    if (count == 0) return {};
    std::string_view text(buffer.data(), kept + static_cast<std::size_t>(count));
    for (auto end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
      pid_t pid = 0;
      const auto [last, code] = std::from_chars(text.data(), text.data() + end, pid);
      if (code != std::errc{} || last != text.data() + end)
        return std::unexpected(os::content_error(file.path(), "lists something else than process ids"));
      pids.push_back(pid);
      text.remove_prefix(end + 1);
    }
    if ((extent == Extent::first_record && !pids.empty()) || pids.size() > most) return {};
    if (text.size() == buffer.size()) return std::unexpected(os::content_error(file.path(), "holds no process ids"));
    std::memmove(buffer.data(), text.data(), text.size());
    kept = text.size();
  }
}

os::FileResult<void> append_processes(const os::Directory& cgroup, Extent extent, std::vector<pid_t>& pids,
                                      std::size_t most) {
  const auto file = cgroup.file("cgroup.procs");
  return file ? append_processes(*file, extent, pids, most) : std::unexpected(file.error());
}

/// In rising order, each once. 0 stands for a process that this pid namespace does not see; to kill(2) it would mean
/// ourselves.
std::vector<pid_t> in_order(std::vector<pid_t> pids) {
  std::erase_if(pids, [](pid_t pid) { return pid <= 0; });
  std::ranges::sort(pids);
  pids.erase(std::ranges::unique(pids).begin(), pids.end());
  return pids;
}

/// What may happen to any cgroup while a tree is walked: it vanishes, or it is a threaded one (v2), whose processes are
/// listed further up.
bool is_passed_over(const os::FileError& error) { return error.is_gone() || error.code == EOPNOTSUPP; }

/// Of a tree that is asked whether anybody is left: 2 ms. A pod of more cgroups than that made them itself.
constexpr std::size_t most_looked_at = 64;

/// As the pids controller counts, and false where there is none; on v1 a cgroup that is gone there, where it is another
/// directory, has none. A task counts until its parent has reaped it.
bool has_no_tasks(const CgroupHierarchy& hierarchy, std::string_view cgroup, std::string_view left_out) {
  const auto all = task_count(hierarchy, cgroup);
  if (!all) return hierarchy.version() == CgroupVersion::v1 && all.error().is_gone() && hierarchy.pids("/").has_value();
  if (left_out.empty()) return *all == 0;
  return *all <= task_count(hierarchy, fmt::format("{}/{}", cgroup, left_out)).value_or(0);
}

/// The walk through a cgroup and all below it. Each is opened from the one above by its name alone: whoever may make
/// cgroups can nest them deeper than any path reaches.
class Walk {
 public:
  /// `left_out`: see the header.
  Walk(Extent extent, std::string_view left_out, const WalkLimit& limit = {})
      : extent_{extent}, left_out_{left_out}, limit_{limit} {}

  /// The processes of the tree; of `first_record` some of them, as soon as there are any. One that moved while the tree
  /// was walked may be met twice. Not all of them once it exceeds the limit.
  os::FileResult<std::vector<pid_t>> run(const os::Directory& root) {
    if (const auto entered = enter(root.subdirectory("")); !entered) return std::unexpected(entered.error());
    while (!open_.empty() && !has_enough()) {
      auto& [directory, children] = open_.back();
      if (children.empty()) {
        open_.pop_back();
        continue;
      }
      const auto name = std::move(children.back());
      children.pop_back();
      auto child = directory.subdirectory(name);
      if (child && open_.size() > 1) child = (*std::move(child)).shown_as(root.path() + "/.../" + name);
      if (const auto entered = enter(std::move(child)); !entered) return std::unexpected(entered.error());
    }
    exceeded_ = exceeds_limit();
    return std::move(pids_);
  }

  [[nodiscard]] bool exceeded_limit() const { return exceeded_; }
  /// That were looked at.
  [[nodiscard]] std::size_t cgroups() const { return cgroups_; }

 private:
  struct Open {
    os::Directory directory;
    std::vector<std::string> children;  // that are to be entered
  };

  [[nodiscard]] bool exceeds_limit() const { return pids_.size() > limit_.processes || cgroups_ > limit_.cgroups; }
  [[nodiscard]] bool has_enough() const {
    return (extent_ == Extent::first_record && !pids_.empty()) || exceeds_limit();
  }

  os::FileResult<void> enter(os::FileResult<os::Directory> cgroup) {
    if (!cgroup) return unless_passed_over(cgroup.error());
    ++cgroups_;
    if (const auto appended = append_processes(*cgroup, extent_, pids_, limit_.processes); !appended)
      if (auto failed = unless_passed_over(appended.error()); !failed) return failed;
    if (has_enough()) return {};
    auto listed = cgroup->subdirectories_within(most_entries());
    if (!listed) return unless_passed_over(listed.error());
    if (!*listed) {
      cgroups_ = limit_.cgroups + 1;
      return {};
    }
    auto& children = **listed;
    if (std::exchange(is_first_, false)) std::erase(children, left_out_);
    if (!children.empty()) open_.push_back({*std::move(cgroup), std::move(children)});
    return {};
  }

  /// Of one directory, files and all.
  [[nodiscard]] std::size_t most_entries() const {
    constexpr std::size_t most_files = 512;  // a cgroup has fewer, of all controllers together
    return limit_.cgroups + std::min(most_files, std::numeric_limits<std::size_t>::max() - limit_.cgroups);
  }

  static os::FileResult<void> unless_passed_over(const os::FileError& error) {
    if (is_passed_over(error)) return {};
    return std::unexpected(error);
  }

  Extent extent_;
  std::string_view left_out_;
  WalkLimit limit_;
  bool is_first_ = true;
  bool exceeded_ = false;
  std::size_t cgroups_ = 0;
  std::vector<Open> open_;
  std::vector<pid_t> pids_;
};

}  // namespace

os::FileResult<std::vector<pid_t>> processes(const CgroupHierarchy& hierarchy, std::string_view cgroup,
                                             std::string_view left_out) {
  WalkLimit none;
  auto pids = processes_within(none, hierarchy, cgroup, left_out);
  if (!pids) return std::unexpected(pids.error());
  return *std::move(*pids);
}

os::FileResult<std::optional<std::vector<pid_t>>> processes_within(WalkLimit& limit, const CgroupHierarchy& hierarchy,
                                                                   std::string_view cgroup, std::string_view left_out) {
  const auto directory = hierarchy.memory(cgroup);
  if (!directory) return std::unexpected(directory.error());
  Walk walk{Extent::all, left_out, limit};
  auto pids = walk.run(*directory);
  limit.cgroups -= std::min(walk.cgroups(), limit.cgroups);
  if (!pids) return std::unexpected(pids.error());
  if (walk.exceeded_limit()) return std::nullopt;
  return in_order(*std::move(pids));
}

os::FileResult<std::vector<pid_t>> first_processes(const CgroupHierarchy& hierarchy, std::string_view cgroup) {
  const auto file = hierarchy.memory_file(cgroup, "cgroup.procs");
  std::vector<pid_t> pids;
  const auto appended =
      file ? append_processes(*file, Extent::first_record, pids) : os::FileResult<void>{std::unexpected(file.error())};
  if (!appended && !is_passed_over(appended.error())) return std::unexpected(appended.error());
  return in_order(std::move(pids));
}

os::FileResult<std::vector<pid_t>> first_processes(const os::KeptFile& unread) {
  std::vector<pid_t> pids;
  const auto appended = append_processes(unread, Extent::first_record, pids);
  if (!appended) return std::unexpected(appended.error());
  return in_order(std::move(pids));
}

os::FileResult<std::int64_t> task_count(const CgroupHierarchy& hierarchy, std::string_view cgroup) {
  const auto directory = hierarchy.pids(cgroup);
  if (!directory) return std::unexpected(directory.error());
  const auto file = directory->file("pids.current");
  return file ? file->read_number() : std::unexpected(file.error());
}

os::FileResult<std::int64_t> process_count(const CgroupHierarchy& hierarchy, std::string_view cgroup) {
  if (const auto tasks = task_count(hierarchy, cgroup)) return tasks;
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
  Walk walk{Extent::first_record, left_out, {.cgroups = most_looked_at}};
  const auto pids = walk.run(*directory);
  if (!pids) return std::unexpected(pids.error());
  if (pids->empty() && walk.exceeded_limit()) return has_no_tasks(hierarchy, cgroup, left_out);
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
