#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "os/file_descriptor.hpp"
#include "os/file_error.hpp"

namespace evictd::os {

/// A file of the kernel's that is opened once and read again and again: one pread, no allocation unless it fails.
///
/// Meant for files that the kernel writes as one record (counters, memory.stat, /proc/meminfo): it hands them over
/// whole where they fit. Once the file's cgroup is removed every read fails with an error that `is_gone()`.
class KeptFile {
 public:
  KeptFile(FileDescriptor descriptor, std::string path) : descriptor_(std::move(descriptor)), path_(std::move(path)) {}

  /// The content, in the caller's buffer. A file that fills the buffer counts as too large (EFBIG).
  [[nodiscard]] FileResult<std::string_view> read(std::span<char> buffer) const;
  /// For a file that holds one number, 0 to 2^63-1.
  [[nodiscard]] FileResult<std::int64_t> read_number() const;
  /// For a cgroup's limit: a number, or absent for "max".
  [[nodiscard]] FileResult<std::optional<std::int64_t>> read_limit() const;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int descriptor() const { return descriptor_.get(); }

 private:
  FileDescriptor descriptor_;
  std::string path_;
};

/// Enough for memory.stat (1 to 2 KiB) and /proc/meminfo (1.5 KiB) of any kernel, small enough for the stack.
inline constexpr std::size_t table_size = 16384;

}  // namespace evictd::os
