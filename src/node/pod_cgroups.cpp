#include "node/pod_cgroups.hpp"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "core/error.hpp"
#include "node/cgroup_processes.hpp"
#include "node/kept_file.hpp"

namespace evictd::node {
namespace {

/// Neither nothing nor the root: what is measured and killed by this path must be one pod.
bool is_pod_cgroup(std::string_view path) { return path.find_first_not_of('/') != std::string_view::npos; }

FileError no_pod_cgroup(std::string_view path) {
  return {Error{fmt::format("\"{}\" is not the cgroup of a pod", path)}, EINVAL};
}

}  // namespace

FileResult<void> PodMemory::open() {
  if (!is_pod_cgroup(path_)) return std::unexpected(no_pod_cgroup(path_));
  auto opened = MemoryCgroup::open_without_limit(*hierarchy_, path_);
  if (!opened) return std::unexpected(opened.error());
  files_ = *std::move(opened);
  return {};
}

FileResult<std::int64_t> PodMemory::read(Read read) {
  if (!files_)
    if (const auto opened = open(); !opened) return std::unexpected(opened.error());
  const auto number = ((*files_).*read)();
  if (!number && number.error().is_gone()) files_.reset();
  return number;
}

void PodCgroups::sync(std::span<const PodCgroup> pods) {
  std::set<std::string_view> listed;
  for (const auto& [uid, cgroup] : pods) {
    listed.insert(uid);
    auto& pod = pods_[uid];
    if (pod != nullptr && pod->path() == cgroup) continue;
    pod = std::make_shared<PodMemory>(*hierarchy_, cgroup);
    (void)pod->open();  // it may not have been made yet: the next reading tries again, and tells
  }
  std::erase_if(pods_, [&](const auto& entry) { return !listed.contains(entry.first); });
}

std::shared_ptr<PodMemory> PodCgroups::memory(std::string_view uid) const {
  const auto known = pods_.find(uid);
  return known == pods_.end() ? nullptr : known->second;
}

FileResult<std::int64_t> PodCgroups::usage(std::string_view uid) {
  const auto pod = memory(uid);
  return pod != nullptr ? pod->usage() : std::unexpected(path(uid).error());
}

FileResult<std::int64_t> PodCgroups::working_set(std::string_view uid) {
  const auto pod = memory(uid);
  return pod != nullptr ? pod->working_set() : std::unexpected(path(uid).error());
}

FileResult<std::int64_t> PodCgroups::working_set_of(std::string_view cgroup) const {
  if (!is_pod_cgroup(cgroup)) return std::unexpected(no_pod_cgroup(cgroup));
  const auto memory = MemoryCgroup::open_without_limit(*hierarchy_, cgroup);
  if (!memory) return std::unexpected(memory.error());
  return memory->working_set();
}

FileResult<std::string> PodCgroups::path(std::string_view uid) const {
  const auto pod = memory(uid);
  if (pod == nullptr) return std::unexpected(FileError{Error{fmt::format("no pod has the uid \"{}\"", uid)}, ENOENT});
  if (!is_pod_cgroup(pod->path())) return std::unexpected(no_pod_cgroup(pod->path()));
  return pod->path();
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
