#pragma once
#include <cstdint>
#include <string_view>
#include <utility>

#include "os/directory.hpp"
#include "os/file_error.hpp"
#include "os/kept_file.hpp"

namespace evictd::node {

/// The machine's memory in bytes, from the lines of the same names.
struct MachineMemory {
  std::int64_t total = 0;      ///< MemTotal: what the kernel manages
  std::int64_t free = 0;       ///< MemFree
  std::int64_t available = 0;  ///< MemAvailable: the kernel's estimate of what can be had without swapping

  friend bool operator==(const MachineMemory&, const MachineMemory&) = default;
};

/// What the whole machine's memory is used for, in bytes.
struct MachineUse {
  std::int64_t not_free = 0;       ///< MemTotal − MemFree
  std::int64_t anonymous = 0;      ///< AnonPages
  std::int64_t file = 0;           ///< Cached + Buffers + SwapCached: with shared memory, as "file" of memory.stat
  std::int64_t inactive_file = 0;  ///< Inactive(file)

  friend bool operator==(const MachineUse&, const MachineUse&) = default;
};

/// /proc/meminfo, held open. What it says is of this moment, but for some pages that each processor still has to add.
class Meminfo {
 public:
  [[nodiscard]] static os::FileResult<Meminfo> open(const os::Directory& proc);
  [[nodiscard]] os::FileResult<MachineMemory> read() const;
  /// One pread: 2 µs (2 cores, kernel 6.18).
  [[nodiscard]] os::FileResult<MachineUse> read_use() const;

 private:
  explicit Meminfo(os::KeptFile file) : file_(std::move(file)) {}
  [[nodiscard]] os::FileResult<std::int64_t> bytes(std::string_view table, std::string_view key) const;

  os::KeptFile file_;
};

}  // namespace evictd::node
