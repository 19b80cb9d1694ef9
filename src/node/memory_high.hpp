#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "os/directory.hpp"
#include "os/file_error.hpp"

namespace evictd::node {

// memory.high of a v2 cgroup, and evictd's mark that a value of it is its own. Absent: "max", no limit.

[[nodiscard]] os::FileResult<std::optional<std::int64_t>> read_memory_high(const os::Directory& cgroup);

/// Bytes, a multiple of the page size. A value below the usage makes the kernel reclaim in the caller, for seconds
/// where little can be had (until Linux 6.16, from which on this call does not wait).
[[nodiscard]] os::FileResult<void> write_memory_high(const os::Directory& cgroup, std::optional<std::int64_t> high);

/// Which values of memory.high are evictd's: the extended attribute "user.evictd.fence" of the cgroup. It is written
/// before memory.high and has the value from before as well, so whenever evictd is killed, what stands is known as its
/// own.
struct FenceMark {
  std::optional<std::int64_t> before{};
  std::optional<std::int64_t> now{};

  [[nodiscard]] bool covers(std::int64_t high) const { return before == high || now == high; }
  /// "max 314572800"
  [[nodiscard]] std::string text() const;
  /// Nothing where it is none.
  [[nodiscard]] static std::optional<FenceMark> parse(std::string_view text);

  friend bool operator==(const FenceMark&, const FenceMark&) = default;
};

/// Nothing where there is no mark, or one that cannot be understood.
[[nodiscard]] os::FileResult<std::optional<FenceMark>> read_fence_mark(const os::Directory& cgroup);
/// cgroup v2 keeps attributes of users since Linux 5.7; before, this fails with EOPNOTSUPP.
[[nodiscard]] os::FileResult<void> write_fence_mark(const os::Directory& cgroup, const FenceMark& mark);
/// No error where there is none.
[[nodiscard]] os::FileResult<void> remove_fence_mark(const os::Directory& cgroup);

}  // namespace evictd::node
