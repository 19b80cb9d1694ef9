#include "node/pod_cgroups.hpp"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "node/cgroup_processes.hpp"

namespace evictd::node {
namespace {

/// Neither nothing nor the root: what is measured and killed by this path must be one pod.
bool is_pod_cgroup(std::string_view path) { return path.find_first_not_of('/') != std::string_view::npos; }

FileError no_pod_cgroup(std::string_view path) {
  return {Error{fmt::format("\"{}\" is not the cgroup of a pod", path)}, EINVAL};
}

}  // namespace

void PodCgroups::sync(std::span<const PodCgroup> pods) {
  std::set<std::string_view> listed;
  for (const auto& [uid, cgroup] : pods) {
    listed.insert(uid);
    const auto known = pods_.find(uid);
    if (known != pods_.end() && known->second.path == cgroup) continue;
    auto& pod = pods_.insert_or_assign(uid, Pod{cgroup}).first->second;
    (void)open(pod);  // it may not have been made yet: the next reading tries again, and tells
  }
  std::erase_if(pods_, [&](const auto& entry) { return !listed.contains(entry.first); });
}

FileResult<void> PodCgroups::open(Pod& pod) const {
  if (!is_pod_cgroup(pod.path)) return std::unexpected(no_pod_cgroup(pod.path));
  auto opened = MemoryCgroup::open_without_limit(*hierarchy_, pod.path);
  if (!opened) return std::unexpected(opened.error());
  pod.memory = *std::move(opened);
  return {};
}

FileResult<std::int64_t> PodCgroups::read(std::string_view uid, Read read) {
  const auto known = pods_.find(uid);
  if (known == pods_.end()) return std::unexpected(path(uid).error());
  auto& pod = known->second;
  if (!pod.memory)
    if (const auto opened = open(pod); !opened) return std::unexpected(opened.error());
  const auto number = ((*pod.memory).*read)();
  if (!number && number.error().is_gone()) pod.memory.reset();
  return number;
}

FileResult<std::int64_t> PodCgroups::usage(std::string_view uid) { return read(uid, &MemoryCgroup::usage); }

FileResult<std::int64_t> PodCgroups::working_set(std::string_view uid) { return read(uid, &MemoryCgroup::working_set); }

FileResult<std::int64_t> PodCgroups::working_set_of(std::string_view cgroup) const {
  if (!is_pod_cgroup(cgroup)) return std::unexpected(no_pod_cgroup(cgroup));
  const auto memory = MemoryCgroup::open_without_limit(*hierarchy_, cgroup);
  if (!memory) return std::unexpected(memory.error());
  return memory->working_set();
}

FileResult<std::string> PodCgroups::path(std::string_view uid) const {
  const auto known = pods_.find(uid);
  if (known == pods_.end())
    return std::unexpected(FileError{Error{fmt::format("no pod has the uid \"{}\"", uid)}, ENOENT});
  if (!is_pod_cgroup(known->second.path)) return std::unexpected(no_pod_cgroup(known->second.path));
  return known->second.path;
}

FileResult<std::vector<pid_t>> PodCgroups::processes(std::string_view uid) const {
  const auto cgroup = path(uid);
  if (!cgroup) return std::unexpected(cgroup.error());
  return node::processes(*hierarchy_, *cgroup);
}

FileResult<std::int64_t> PodCgroups::process_count(std::string_view uid) const {
  const auto cgroup = path(uid);
  if (!cgroup) return std::unexpected(cgroup.error());
  return node::process_count(*hierarchy_, *cgroup);
}

FileResult<bool> PodCgroups::is_empty_or_gone(std::string_view uid) const {
  const auto cgroup = path(uid);
  if (cgroup) return node::is_empty_or_gone(*hierarchy_, *cgroup);
  if (cgroup.error().is_gone()) return true;
  return std::unexpected(cgroup.error());
}

FileResult<std::optional<KeptFile>> PodCgroups::events(std::string_view uid) const {
  const auto cgroup = path(uid);
  if (!cgroup) return std::unexpected(cgroup.error());
  return population_events(*hierarchy_, *cgroup);
}

}  // namespace evictd::node
