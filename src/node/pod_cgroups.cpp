#include "node/pod_cgroups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "node/cgroup_processes.hpp"
#include "os/kept_file.hpp"

namespace evictd::node {
namespace {

/// Neither nothing nor the root: what is measured and killed by this path must be one pod.
bool is_pod_cgroup(std::string_view path) { return path.find_first_not_of('/') != std::string_view::npos; }

os::FileError no_pod_cgroup(std::string_view path) {
  return {Error{fmt::format("\"{}\" is not the cgroup of a pod", path)}, EINVAL};
}

}  // namespace

PodMemory::PodMemory(const CgroupHierarchy& hierarchy, const PodCgroup& pod) : hierarchy_(&hierarchy), path_(pod.path) {
  for (auto& part : pod.parts()) parts_.push_back({.path = std::move(part)});
}

bool PodMemory::is_of(const PodCgroup& pod) const {
  return path_ == pod.path && std::ranges::equal(parts_, pod.parts(), {}, &Part::path);
}

os::FileResult<void> PodMemory::open() {
  os::FileResult<void> result;
  for (auto& part : parts_)
    if (auto opened = open(part); !opened && result) result = std::move(opened);
  return result;
}

os::FileResult<void> PodMemory::open(Part& part) const {
  if (!is_pod_cgroup(part.path)) return std::unexpected(no_pod_cgroup(part.path));
  auto opened = MemoryCgroup::open_without_limit(*hierarchy_, part.path);
  if (!opened) return std::unexpected(opened.error());
  part.files = *std::move(opened);
  return {};
}

/// Of those parts that are there.
template <class Number>
os::FileResult<Number> PodMemory::sum(os::FileResult<Number> (MemoryCgroup::*read)() const) {
  os::FileResult<Number> result = std::unexpected(no_pod_cgroup(path_));
  for (auto& part : parts_) {
    const auto opened = part.files ? os::FileResult<void>{} : open(part);
    const auto number = opened ? ((*part.files).*read)() : os::FileResult<Number>{std::unexpected(opened.error())};
    if (!number && !number.error().is_gone()) return number;
    if (!number) part.files.reset();
    if (!result)
      result = number;
    else if (number)
      *result += *number;
  }
  return result;
}

template os::FileResult<std::int64_t> PodMemory::sum(os::FileResult<std::int64_t> (MemoryCgroup::*)() const);
template os::FileResult<ProcessMemory> PodMemory::sum(os::FileResult<ProcessMemory> (MemoryCgroup::*)() const);

os::FileResult<std::int64_t> PodMemory::process_count() const {
  os::FileResult<std::int64_t> result = std::unexpected(no_pod_cgroup(path_));
  for (const auto& part : parts_) {
    if (!is_pod_cgroup(part.path)) return std::unexpected(no_pod_cgroup(part.path));
    const auto count = node::process_count(*hierarchy_, part.path);
    if (!count && !count.error().is_gone()) return count;
    if (!result)
      result = count;
    else if (count)
      *result += *count;
  }
  return result;
}

void PodCgroups::sync(std::span<const PodCgroup> pods) {
  std::set<std::string_view> listed;
  for (const auto& cgroup : pods) {
    listed.insert(cgroup.uid);
    auto& pod = pods_[cgroup.uid];
    if (pod != nullptr && pod->is_of(cgroup)) continue;
    pod = std::make_shared<PodMemory>(*hierarchy_, cgroup);
    (void)pod->open();  // it may not have been made yet: the next reading tries again, and tells
  }
  std::erase_if(pods_, [&](const auto& entry) { return !listed.contains(entry.first); });
}

std::shared_ptr<PodMemory> PodCgroups::memory(std::string_view uid) const {
  const auto known = pods_.find(uid);
  return known == pods_.end() ? nullptr : known->second;
}

os::FileResult<std::int64_t> PodCgroups::usage(std::string_view uid) {
  const auto pod = memory(uid);
  return pod != nullptr ? pod->usage() : std::unexpected(path(uid).error());
}

os::FileResult<std::int64_t> PodCgroups::working_set(std::string_view uid) {
  const auto pod = memory(uid);
  return pod != nullptr ? pod->working_set() : std::unexpected(path(uid).error());
}

os::FileResult<ProcessMemory> PodCgroups::process_memory(std::string_view uid) {
  const auto pod = memory(uid);
  return pod != nullptr ? pod->process_memory() : std::unexpected(path(uid).error());
}

os::FileResult<std::int64_t> PodCgroups::working_set_of(std::string_view cgroup) const {
  if (!is_pod_cgroup(cgroup)) return std::unexpected(no_pod_cgroup(cgroup));
  const auto memory = MemoryCgroup::open_without_limit(*hierarchy_, cgroup);
  if (!memory) return std::unexpected(memory.error());
  return memory->working_set();
}

os::FileResult<std::string> PodCgroups::path(std::string_view uid) const {
  const auto pod = memory(uid);
  if (pod == nullptr)
    return std::unexpected(os::FileError{Error{fmt::format("no pod has the uid \"{}\"", uid)}, ENOENT});
  if (!is_pod_cgroup(pod->path())) return std::unexpected(no_pod_cgroup(pod->path()));
  return pod->path();
}

os::FileResult<std::vector<pid_t>> PodCgroups::processes(std::string_view uid) const {
  const auto cgroup = path(uid);
  if (!cgroup) return std::unexpected(cgroup.error());
  return node::processes(*hierarchy_, *cgroup);
}

os::FileResult<std::int64_t> PodCgroups::process_count(std::string_view uid) const {
  const auto pod = memory(uid);
  return pod != nullptr ? pod->process_count() : std::unexpected(path(uid).error());
}

os::FileResult<bool> PodCgroups::is_empty_or_gone(std::string_view uid) const {
  const auto cgroup = path(uid);
  if (cgroup) return node::is_empty_or_gone(*hierarchy_, *cgroup);
  if (cgroup.error().is_gone()) return true;
  return std::unexpected(cgroup.error());
}

os::FileResult<bool> PodCgroups::is_cgroup_empty_or_gone(std::string_view cgroup) const {
  if (!is_pod_cgroup(cgroup)) return std::unexpected(no_pod_cgroup(cgroup));
  return node::is_empty_or_gone(*hierarchy_, cgroup);
}

os::FileResult<std::optional<os::KeptFile>> PodCgroups::events(std::string_view uid) const {
  const auto cgroup = path(uid);
  if (!cgroup) return std::unexpected(cgroup.error());
  return population_events(*hierarchy_, *cgroup);
}

}  // namespace evictd::node
