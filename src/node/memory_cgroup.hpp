#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "node/cgroup.hpp"
#include "node/meminfo.hpp"
#include "os/directory.hpp"
#include "os/file_error.hpp"
#include "os/kept_file.hpp"

namespace evictd::node {

/// The memory of a cgroup and everything below it, in bytes.
struct MemoryReading {
  std::int64_t usage = 0;
  std::int64_t inactive_file = 0;       ///< file cache that was not used of late: the kernel takes it back first
  std::optional<std::int64_t> limit{};  ///< absent: unlimited

  /// What the kubelet counts as used. (cAdvisor: workingSet)
  [[nodiscard]] std::int64_t working_set() const { return std::max<std::int64_t>(0, usage - inactive_file); }

  friend bool operator==(const MemoryReading&, const MemoryReading&) = default;
};

/// What comes back of a cgroup's memory once its processes end, bytes. File cache stays, also when the cgroup is
/// removed: the kernel takes it back when it has need of it. So do files of a tmpfs, which nothing tells from memory
/// that processes share.
struct ProcessMemory {
  std::int64_t anonymous = 0;  ///< as long as there is some, there are processes
  std::int64_t all = 0;        ///< with shared memory, stacks, page tables and the like
  std::int64_t shared = 0;     ///< of that the shared memory, and files of a tmpfs

  ProcessMemory& operator+=(const ProcessMemory& other) {
    anonymous += other.anonymous;
    all += other.all;
    shared += other.shared;
    return *this;
  }
  friend bool operator==(const ProcessMemory&, const ProcessMemory&) = default;
};

/// What a cgroup below the root holds now, bytes: one reading, for which nothing stays open.
[[nodiscard]] os::FileResult<std::int64_t> memory_usage(const CgroupHierarchy& hierarchy, std::string_view cgroup);
/// The file of that number, for those who read it later.
[[nodiscard]] os::FileResult<os::KeptFile> memory_usage_file(const CgroupHierarchy& hierarchy, std::string_view cgroup);

/// How the root cgroup of v2 is counted, which has no usage of its own.
enum class RootUsage : std::uint8_t {
  AnonAndFile,  ///< anonymous memory and files: the kubelet from 1.32 on (opencontainers/cgroups, fs2: memory.stat)
  NotFree,      ///< MemTotal − MemFree of /proc/meminfo: kubelets before, so slab and huge pages count as used
};

/// Reads one cgroup's memory from files that stay open. Once the cgroup is removed every read fails with an error that
/// is_gone(), also when another of the same name was made since: open that anew.
///
/// | | v1 | v2 | v2, root cgroup |
/// |---|---|---|---|
/// | usage | memory.usage_in_bytes | memory.current | by RootUsage |
/// | inactive_file | total_inactive_file | inactive_file | Inactive(file) of /proc/meminfo, so of v1's root |
/// | anonymous memory | total_rss | anon | anon |
/// | file cache | total_cache − total_shmem | file − shmem + slab_reclaimable | the same |
/// | limit | memory.limit_in_bytes | memory.max | none |
///
/// Of the root the machine's own counters are read, which say the same as its memory.stat and are of this moment. What
/// cgroups count is added up for those above them every two seconds, or sooner once much has changed, of which the
/// kernel can lose sight while the root is read (mm/memcontrol.c of Linux 6.18: 160 MiB behind, and 80 MiB that had
/// gone two seconds before, while two processes took 200 MiB each).
class MemoryCgroup {
 public:
  /// `proc` is asked only for a root cgroup, `root_usage` for that of v2.
  [[nodiscard]] static os::FileResult<MemoryCgroup> open(const CgroupHierarchy& hierarchy, std::string_view cgroup,
                                                         RootUsage root_usage, const os::Directory& proc);
  /// For cgroups below the root whose limit is not needed: readings carry none, and there is a descriptor less for
  /// each of many.
  [[nodiscard]] static os::FileResult<MemoryCgroup> open_without_limit(const CgroupHierarchy& hierarchy,
                                                                       std::string_view cgroup);

  /// One pread; for the root of v2 of a longer file: 0.6 µs (median of 5000, 2 cores, kernel 6.18, cgroup v1).
  [[nodiscard]] os::FileResult<std::int64_t> usage() const;
  /// Usage, memory.stat and the limit: 8 µs, measured alike. The kernel sums memory.stat up over the cgroups below that
  /// changed since, so on a busy node it is the dear part.
  [[nodiscard]] os::FileResult<MemoryReading> read() const;
  /// The same without the limit.
  [[nodiscard]] os::FileResult<MemoryReading> read_without_limit() const;
  /// Usage less inactive_file.
  [[nodiscard]] os::FileResult<std::int64_t> working_set() const;
  /// Usage less file cache.
  [[nodiscard]] os::FileResult<ProcessMemory> process_memory() const;

 private:
  MemoryCgroup(CgroupVersion version, os::KeptFile stat) : version_{version}, stat_{std::move(stat)} {}
  [[nodiscard]] std::int64_t usage(const MachineUse& use) const;
  [[nodiscard]] os::FileResult<std::int64_t> inactive_file() const;
  [[nodiscard]] os::FileResult<std::int64_t> number(std::string_view stat, std::string_view key) const;
  [[nodiscard]] os::FileResult<std::optional<std::int64_t>> limit() const;

  CgroupVersion version_;
  os::KeptFile stat_;
  std::optional<os::KeptFile> usage_;  // absent: the root of v2
  std::optional<os::KeptFile> limit_;
  std::optional<Meminfo> machine_;  // of a root
  RootUsage root_usage_ = RootUsage::AnonAndFile;
};

}  // namespace evictd::node
