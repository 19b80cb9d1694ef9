#pragma once
#include <cstdint>
#include <utility>

#include "node/directory.hpp"
#include "node/file_error.hpp"
#include "node/kept_file.hpp"

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
  [[nodiscard]] static FileResult<Meminfo> open(const Directory& proc);
  [[nodiscard]] FileResult<MachineMemory> read() const;

 private:
  explicit Meminfo(KeptFile file) : file_(std::move(file)) {}

  KeptFile file_;
};

}  // namespace evictd::node
