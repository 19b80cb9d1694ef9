#include "node/pod_cgroups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
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

PodMemory::PodMemory(const CgroupHierarchy& hierarchy, const PodCgroup& pod)
    : hierarchy_(&hierarchy), own_{.path = pod.path} {
  set_containers(pod.containers);
}

/// What is open of those that stay is kept.
void PodMemory::set_containers(const std::vector<std::string>& cgroups) {
  if (std::ranges::equal(containers_, cgroups, {}, &Part::path)) return;
  std::vector<Part> containers;
  for (const auto& path : cgroups) {
    const auto known = std::ranges::find(containers_, path, &Part::path);
    containers.push_back(known == containers_.end() ? Part{.path = path} : std::move(*known));
  }
  containers_ = std::move(containers);
}

os::FileResult<void> PodMemory::open() {
  os::FileResult<void> result;
  for (auto& part : measured())
    if (auto opened = open(part); !opened && result) result = std::move(opened);
  return result;
}

os::FileResult<void> PodMemory::open(Part& part) const {
  if (part.files) return {};
  if (!is_pod_cgroup(part.path)) return std::unexpected(no_pod_cgroup(part.path));
  auto opened = MemoryCgroup::open_without_limit(*hierarchy_, part.path);
  if (!opened) return std::unexpected(opened.error());
  part.files = *std::move(opened);
  return {};
}

template <class Number>
os::FileResult<Number> PodMemory::read(Part& part, os::FileResult<Number> (MemoryCgroup::*read)() const) const {
  if (const auto opened = open(part); !opened) return std::unexpected(opened.error());
  auto number = ((*part.files).*read)();
  if (!number && number.error().is_gone()) part.files.reset();
  return number;
}

/// Of those parts that are there. Hundreds of pods are read while memory is short: no error is made that nobody gets.
template <class Number>
os::FileResult<Number> PodMemory::sum(os::FileResult<Number> (MemoryCgroup::*read)() const) {
  std::optional<os::FileResult<Number>> result;
  for (auto& part : measured()) {
    auto number = this->read(part, read);
    if (!number && !number.error().is_gone()) return number;
    if (!result || !*result)
      result = std::move(number);
    else if (number)
      **result += *number;
  }
  return result ? *std::move(result) : std::unexpected(no_pod_cgroup(path()));
}

template os::FileResult<std::int64_t> PodMemory::sum(os::FileResult<std::int64_t> (MemoryCgroup::*)() const);
template os::FileResult<ProcessMemory> PodMemory::sum(os::FileResult<ProcessMemory> (MemoryCgroup::*)() const);

os::FileResult<std::int64_t> PodMemory::working_set_of(std::string_view container) {
  const auto known = std::ranges::find(containers_, container, &Part::path);
  if (known == containers_.end()) return std::unexpected(no_pod_cgroup(container));
  return read(*known, &MemoryCgroup::working_set);
}

std::string PodMemory::largest_container() {
  if (containers_.size() == 1) return containers_.front().path;
  std::string largest;
  std::int64_t most = -1;
  for (auto& container : containers_) {
    if (!is_pod_cgroup(container.path)) continue;
    const auto held =
        container.files ? read(container, &MemoryCgroup::usage) : memory_usage(*hierarchy_, container.path);
    if (!held || *held <= most) continue;
    largest = container.path;
    most = *held;
  }
  return largest;
}

std::size_t PodMemory::keep_containers_open(std::size_t most) {
  if (path().empty()) return 0;  // they are what is measured, and open for that
  std::size_t open = 0;
  for (auto& container : containers_)
    if (open == most)
      container.files.reset();
    else if (read(container, &MemoryCgroup::usage))  // opens it, and lets go of one that has ended
      ++open;
  return open;
}

os::FileResult<std::int64_t> PodMemory::process_count() {
  os::FileResult<std::int64_t> result = std::unexpected(no_pod_cgroup(path()));
  for (const auto& part : measured()) {
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
  add(pods);
  std::set<std::string_view> listed;
  for (const auto& cgroup : pods) listed.insert(cgroup.uid);
  std::erase_if(pods_, [&](const auto& entry) { return !listed.contains(entry.first); });
}

bool PodCgroups::knows(const PodCgroup& pod) const {
  const auto known = memory(pod.uid);
  return known != nullptr && known->path() == pod.path;
}

void PodCgroups::add(std::span<const PodCgroup> pods) {
  for (const auto& cgroup : pods) {
    auto& pod = pods_[cgroup.uid];
    if (pod != nullptr && pod->path() == cgroup.path) {
      pod->set_containers(cgroup.containers);
      continue;
    }
    pod = std::make_shared<PodMemory>(*hierarchy_, cgroup);
    (void)pod->open();  // it may not have been made yet: the next reading tries again, and tells
  }
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

std::string PodCgroups::largest_container(std::string_view uid) const {
  const auto pod = memory(uid);
  return pod != nullptr ? pod->largest_container() : std::string{};
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

os::FileResult<std::int64_t> PodCgroups::task_count(std::string_view uid) const {
  const auto cgroup = path(uid);
  return cgroup ? node::task_count(*hierarchy_, *cgroup) : std::unexpected(cgroup.error());
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
