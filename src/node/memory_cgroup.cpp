#include "node/memory_cgroup.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "core/error.hpp"
#include "os/numbers.hpp"

namespace evictd::node {
namespace {

struct Files {
  std::string_view usage;
  std::string_view limit;
  // Lines of memory.stat.
  std::string_view inactive_file;
  std::string_view anonymous;
  std::string_view cache;  // with shared memory
  std::string_view shared;
};

constexpr Files files_of(CgroupVersion version) {
  if (version == CgroupVersion::v1)
    return {"memory.usage_in_bytes", "memory.limit_in_bytes",
            "total_inactive_file",   "total_rss",
            "total_cache",           "total_shmem"};
  return {"memory.current", "memory.max", "inactive_file", "anon", "file", "shmem"};
}

// v1 shows "unlimited" as the largest whole number of pages below 2^63; no limit that means anything comes near.
constexpr std::int64_t unlimited = std::int64_t{1} << 62;

bool is_root(std::string_view cgroup) { return cgroup.find_first_not_of('/') == std::string_view::npos; }

/// Of which the whole machine is the cgroup. The root of a cgroup namespace has numbers of its own, and a file that the
/// true root of v2 has not; of v1 only that one has the file of another kind.
bool is_true_root(CgroupVersion version, std::string_view cgroup, const os::Directory& directory) {
  if (!is_root(cgroup)) return false;
  return version == CgroupVersion::v2 ? !directory.has(files_of(version).usage) : directory.has("release_agent");
}

os::FileResult<os::KeptFile> open_stat(CgroupVersion version, const os::Directory& directory) {
  auto stat = directory.file("memory.stat");
  // A v2 cgroup has memory files only where its parent hands the controller down.
  if (!stat && version == CgroupVersion::v2 && stat.error().is_gone() && directory.has("cgroup.procs"))
    return std::unexpected(
        os::FileError{Error{fmt::format("{}: the memory controller is not enabled here: write \"+memory\" to "
                                        "cgroup.subtree_control of the cgroup above",
                                        directory.path())},
                      EOPNOTSUPP});
  return stat;
}

}  // namespace

os::FileResult<os::KeptFile> memory_usage_file(const CgroupHierarchy& hierarchy, std::string_view cgroup) {
  return hierarchy.memory_file(cgroup, files_of(hierarchy.version()).usage);
}

os::FileResult<std::int64_t> memory_usage(const CgroupHierarchy& hierarchy, std::string_view cgroup) {
  const auto file = memory_usage_file(hierarchy, cgroup);
  return file ? file->read_number() : std::unexpected(file.error());
}

os::FileResult<MemoryCgroup> MemoryCgroup::open(const CgroupHierarchy& hierarchy, std::string_view cgroup,
                                                RootUsage root_usage, const os::Directory& proc) {
  const auto version = hierarchy.version();
  const auto directory = hierarchy.memory(cgroup);
  if (!directory) return std::unexpected(directory.error());
  auto stat = open_stat(version, *directory);
  if (!stat) return std::unexpected(stat.error());

  const auto files = files_of(version);
  MemoryCgroup memory(version, *std::move(stat));
  if (is_true_root(version, cgroup, *directory)) {
    auto machine = Meminfo::open(proc);
    if (!machine) return std::unexpected(machine.error());
    memory.machine_ = *std::move(machine);
    memory.root_usage_ = root_usage;
    if (version == CgroupVersion::v2) return memory;
  }
  auto usage = directory->file(files.usage);
  if (!usage) return std::unexpected(usage.error());
  memory.usage_ = *std::move(usage);
  auto limit = directory->file(files.limit);
  if (!limit) return std::unexpected(limit.error());
  memory.limit_ = *std::move(limit);
  return memory;
}

os::FileResult<MemoryCgroup> MemoryCgroup::open_without_limit(const CgroupHierarchy& hierarchy,
                                                              std::string_view cgroup) {
  const auto version = hierarchy.version();
  const auto directory = hierarchy.memory(cgroup);
  if (!directory) return std::unexpected(directory.error());
  auto stat = open_stat(version, *directory);
  if (!stat) return std::unexpected(stat.error());
  auto usage = directory->file(files_of(version).usage);
  if (!usage) return std::unexpected(usage.error());
  MemoryCgroup memory(version, *std::move(stat));
  memory.usage_ = *std::move(usage);
  return memory;
}

os::FileResult<std::int64_t> MemoryCgroup::usage() const {
  if (usage_) return usage_->read_number();
  const auto use = machine_->read_use();
  return use ? os::FileResult<std::int64_t>{usage(*use)} : std::unexpected(use.error());
}

std::int64_t MemoryCgroup::usage(const MachineUse& use) const {
  return root_usage_ == RootUsage::NotFree ? use.not_free : use.anonymous + use.file;
}

os::FileResult<std::int64_t> MemoryCgroup::inactive_file() const {
  if (machine_) {
    const auto use = machine_->read_use();
    return use ? os::FileResult<std::int64_t>{use->inactive_file} : std::unexpected(use.error());
  }
  std::array<char, os::table_size> buffer;
  const auto stat = stat_.read(buffer);
  return stat ? number(*stat, files_of(version_).inactive_file) : std::unexpected(stat.error());
}

os::FileResult<std::int64_t> MemoryCgroup::number(std::string_view stat, std::string_view key) const {
  if (const auto number = os::find_number(stat, key)) return *number;
  return std::unexpected(os::content_error(stat_.path(), fmt::format("no number behind \"{}\"", key)));
}

os::FileResult<std::optional<std::int64_t>> MemoryCgroup::limit() const {
  if (!limit_) return std::nullopt;
  const auto number = limit_->read_limit();
  if (!number || !*number) return number;
  return **number >= unlimited ? std::nullopt : *number;
}

os::FileResult<MemoryReading> MemoryCgroup::read_without_limit() const {
  if (!usage_) {
    const auto use = machine_->read_use();
    if (!use) return std::unexpected(use.error());
    return MemoryReading{.usage = usage(*use), .inactive_file = use->inactive_file};
  }
  const auto usage = usage_->read_number();
  if (!usage) return std::unexpected(usage.error());
  const auto inactive = inactive_file();
  if (!inactive) return std::unexpected(inactive.error());
  return MemoryReading{.usage = *usage, .inactive_file = *inactive};
}

os::FileResult<MemoryReading> MemoryCgroup::read() const {
  auto reading = read_without_limit();
  if (!reading) return reading;
  const auto limit = this->limit();
  if (!limit) return std::unexpected(limit.error());
  reading->limit = *limit;
  return reading;
}

os::FileResult<std::int64_t> MemoryCgroup::working_set() const {
  const auto reading = read_without_limit();
  if (!reading) return std::unexpected(reading.error());
  return reading->working_set();
}

os::FileResult<ProcessMemory> MemoryCgroup::process_memory() const {
  std::array<char, os::table_size> buffer;
  const auto stat = stat_.read(buffer);
  if (!stat) return std::unexpected(stat.error());
  const auto usage = this->usage();
  if (!usage) return std::unexpected(usage.error());
  const auto files = files_of(version_);
  const auto anonymous = number(*stat, files.anonymous);
  if (!anonymous) return std::unexpected(anonymous.error());
  const auto cache = number(*stat, files.cache);
  if (!cache) return std::unexpected(cache.error());
  const auto shared = os::find_number(*stat, files.shared).value_or(0);
  const auto slab = os::find_number(*stat, "slab_reclaimable").value_or(0);  // v1 does not tell
  return ProcessMemory{
      .anonymous = *anonymous, .all = std::max<std::int64_t>(0, *usage - (*cache - shared) - slab), .shared = shared};
}

}  // namespace evictd::node
