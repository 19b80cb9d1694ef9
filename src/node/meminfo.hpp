#pragma once
#include <cstdint>
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

/// /proc/meminfo, held open.
class Meminfo {
 public:
  [[nodiscard]] static os::FileResult<Meminfo> open(const os::Directory& proc);
  [[nodiscard]] os::FileResult<MachineMemory> read() const;

 private:
  explicit Meminfo(os::KeptFile file) : file_(std::move(file)) {}

  os::KeptFile file_;
};

}  // namespace evictd::node
