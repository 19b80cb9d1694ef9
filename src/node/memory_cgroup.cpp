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

os::FileResult<MemoryCgroup> MemoryCgroup::open(const CgroupHierarchy& hierarchy, std::string_view cgroup,
                                                const os::Directory& proc) {
  const auto version = hierarchy.version();
  const auto directory = hierarchy.memory(cgroup);
  if (!directory) return std::unexpected(directory.error());
  auto stat = open_stat(version, *directory);
  if (!stat) return std::unexpected(stat.error());

  const auto files = files_of(version);
  // The root of a cgroup namespace has its own numbers; only the true root has not.
  if (version == CgroupVersion::v2 && is_root(cgroup) && !directory->has(files.usage)) {
    auto machine = Meminfo::open(proc);
    if (!machine) return std::unexpected(machine.error());
    return MemoryCgroup(version, *std::move(stat), *std::move(machine), std::nullopt);
  }
  auto usage = directory->file(files.usage);
  if (!usage) return std::unexpected(usage.error());
  auto limit = directory->file(files.limit);
  if (!limit) return std::unexpected(limit.error());
  return MemoryCgroup(version, *std::move(stat), *std::move(usage), *std::move(limit));
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
  return MemoryCgroup(version, *std::move(stat), *std::move(usage), std::nullopt);
}

os::FileResult<std::int64_t> MemoryCgroup::usage() const {
  if (const auto* file = std::get_if<os::KeptFile>(&usage_)) return file->read_number();
  const auto memory = std::get<Meminfo>(usage_).read();
  if (!memory) return std::unexpected(memory.error());
  return memory->total - memory->free;
}

os::FileResult<std::int64_t> MemoryCgroup::inactive_file() const {
  std::array<char, os::table_size> buffer;
  const auto table = stat_.read(buffer);
  if (!table) return std::unexpected(table.error());
  const auto key = files_of(version_).inactive_file;
  if (const auto number = os::find_number(*table, key)) return *number;
  return std::unexpected(os::content_error(stat_.path(), fmt::format("no number behind \"{}\"", key)));
}

os::FileResult<std::optional<std::int64_t>> MemoryCgroup::limit() const {
  if (!limit_) return std::nullopt;
  const auto number = limit_->read_limit();
  if (!number || !*number) return number;
  return **number >= unlimited ? std::nullopt : *number;
}

os::FileResult<MemoryReading> MemoryCgroup::read() const {
  const auto usage = this->usage();
  if (!usage) return std::unexpected(usage.error());
  const auto inactive_file = this->inactive_file();
  if (!inactive_file) return std::unexpected(inactive_file.error());
  const auto limit = this->limit();
  if (!limit) return std::unexpected(limit.error());
  return MemoryReading{.usage = *usage, .inactive_file = *inactive_file, .limit = *limit};
}

os::FileResult<ProcessMemory> MemoryCgroup::process_memory() const {
  const auto usage = this->usage();
  if (!usage) return std::unexpected(usage.error());
  std::array<char, os::table_size> buffer;
  const auto table = stat_.read(buffer);
  if (!table) return std::unexpected(table.error());
  const auto files = files_of(version_);
  const auto anonymous = os::find_number(*table, files.anonymous);
  const auto cache = os::find_number(*table, files.cache);
  if (!anonymous || !cache)
    return std::unexpected(os::content_error(
        stat_.path(), fmt::format("no number behind \"{}\"", anonymous ? files.cache : files.anonymous)));
  const auto shared = os::find_number(*table, files.shared).value_or(0);
  const auto slab = os::find_number(*table, "slab_reclaimable").value_or(0);  // v1 does not tell
  return ProcessMemory{.anonymous = *anonymous, .all = std::max<std::int64_t>(0, *usage - (*cache - shared) - slab)};
}

os::FileResult<std::int64_t> MemoryCgroup::working_set() const {
  const auto usage = this->usage();
  if (!usage) return usage;
  const auto inactive_file = this->inactive_file();
  if (!inactive_file) return inactive_file;
  return MemoryReading{.usage = *usage, .inactive_file = *inactive_file}.working_set();
}

}  // namespace evictd::node
