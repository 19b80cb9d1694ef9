#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/duration.hpp"
#include "node/cgroup.hpp"
#include "os/directory.hpp"

namespace evictd::node {

/// What a process holds, bytes (/proc/PID/status).
struct HeldByProcess {
  std::string command;         ///< its name, which it may have chosen itself; printable. Never its arguments
  std::int64_t resident = 0;   ///< VmRSS: the other two, and mapped files
  std::int64_t anonymous = 0;  ///< RssAnon
  std::int64_t shared = 0;     ///< RssShmem

  friend bool operator==(const HeldByProcess&, const HeldByProcess&) = default;
};

/// A row of memory.stat, by its name on v2.
struct MemoryRow {
  std::string_view name;  ///< of a list that lasts
  std::int64_t bytes = 0;

  friend bool operator==(const MemoryRow&, const MemoryRow&) = default;
};

/// How long tasks waited for memory, in percent of the last 10 and 60 s (/proc/pressure/memory, memory.pressure).
struct MemoryStall {
  double some_10 = 0;  ///< at least one of them
  double some_60 = 0;
  double full_10 = 0;  ///< all of them
  double full_60 = 0;

  friend bool operator==(const MemoryStall&, const MemoryStall&) = default;
};

/// Who held what of a pod's memory at one moment.
struct PodMemorySnapshot {
  static constexpr std::size_t most_shown = 10;

  core::Instant time{};
  std::int64_t usage = 0;                  ///< bytes, of the pod's cgroup
  std::vector<HeldByProcess> processes{};  ///< the largest first, `most_shown` at most
  std::size_t processes_read = 0;          ///< so many were looked at
  bool all_read = true;                    ///< false: there may be others
  std::vector<MemoryRow> rows{};           ///< those that there are
  /// Shared memory that no process maps, bytes: files of a tmpfs, which stay when the processes end. As well as can be
  /// told: what several processes map is taken off for each of them. Absent where not all processes were looked at.
  std::optional<std::int64_t> staying{};
  std::optional<MemoryStall> node_stall{};  ///< absent: the kernel does not tell
  std::optional<MemoryStall> pod_stall{};   ///< the same; v2 alone
};

/// Takes snapshots.
class SnapshotReader {
 public:
  SnapshotReader() = default;
  SnapshotReader(const SnapshotReader&) = delete;
  SnapshotReader& operator=(const SnapshotReader&) = delete;
  virtual ~SnapshotReader() = default;

  /// `cgroups`: the pod's own, or its containers' where it has none to itself. `processes_left`: how many processes may
  /// still be looked at, less those that were. Of a pod without a cgroup there is no snapshot.
  [[nodiscard]] virtual std::optional<PodMemorySnapshot> read(std::span<const std::string> cgroups,
                                                              std::size_t& processes_left) const = 0;
};

/// Takes them of what there is, on a thread that may be any: it has its own descriptors, and keeps nothing of a pod
/// open.
///
/// Nothing here waits for a process: /proc/PID/status is told from counters, while the command line and smaps take the
/// process's own lock. On v1 processes are listed by the pids controller's tree where there is one: the kernel lists
/// a cgroup's processes under a mutex of that cgroup, which the kill, that lists by the memory controller's, would wait
/// for.
class PodMemoryReader final : public SnapshotReader {
 public:
  /// From each cgroup, of which 64 are looked at. On v1 the kernel makes and sorts the whole list first, twice for a
  /// snapshot: 1.3 µs for each process.
  static constexpr std::size_t most_from_each = 512;

  PodMemoryReader(CgroupHierarchy hierarchy, os::Directory proc)
      : hierarchy_{std::move(hierarchy)}, proc_{std::move(proc)} {}

  /// Some 20 µs for each process. What is gone or cannot be read is left out.
  [[nodiscard]] std::optional<PodMemorySnapshot> read(std::span<const std::string> cgroups,
                                                      std::size_t& processes_left) const override;

 private:
  bool add_memory(const std::string& cgroup, PodMemorySnapshot& snapshot) const;
  void add_processes(std::span<const std::string> cgroups, std::size_t& left, PodMemorySnapshot& snapshot) const;
  [[nodiscard]] std::vector<pid_t> list(std::span<const std::string> cgroups, bool& complete) const;
  [[nodiscard]] std::optional<HeldByProcess> held_by(pid_t pid) const;
  [[nodiscard]] std::optional<HeldByProcess> held_in_pages(pid_t pid) const;

  CgroupHierarchy hierarchy_;
  os::Directory proc_;
};

}  // namespace evictd::node
