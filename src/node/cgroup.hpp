#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "os/directory.hpp"
#include "os/file_error.hpp"
#include "os/kept_file.hpp"

namespace evictd::node {

/// Which interface the memory controller has.
enum class CgroupVersion : std::uint8_t { v1, v2 };
/// "cgroup v1", "cgroup v2"
[[nodiscard]] std::string_view name(CgroupVersion version);

/// The node's cgroup hierarchy: where the directory of a cgroup is for the controllers that evictd reads.
///
/// With v1 every controller has a tree of its own (MOUNT/memory, MOUNT/pids); with v2 there is one tree, at MOUNT
/// itself or, on hybrid hosts that gave the memory controller to v2, at MOUNT/unified; there other controllers may have
/// stayed with v1.
class CgroupHierarchy {
 public:
  /// Looks at what is mounted: v2 where the memory controller is listed in cgroup.controllers, v1 where
  /// memory/memory.usage_in_bytes exists. The error says what is missing.
  [[nodiscard]] static Result<CgroupHierarchy> detect(const std::filesystem::path& mount);

  [[nodiscard]] CgroupVersion version() const { return version_; }
  /// The root of the memory controller's tree.
  [[nodiscard]] const os::Directory& root() const { return memory_; }

  /// The directory of `cgroup` ("/", "/lab/kubepods") for the memory controller. Where there is none, the error says so
  /// and is_gone().
  [[nodiscard]] os::FileResult<os::Directory> memory(std::string_view cgroup) const;
  /// A file of that directory, by one open(2) for both.
  [[nodiscard]] os::FileResult<os::KeptFile> memory_file(std::string_view cgroup, std::string_view name) const;
  /// Of that directory, by one stat(2): another one in its place has another inode. 0: there is none.
  [[nodiscard]] std::uint64_t memory_inode(std::string_view cgroup) const;
  /// The directory for the pids controller; on v1 hosts without one, every cgroup is_gone().
  [[nodiscard]] os::FileResult<os::Directory> pids(std::string_view cgroup) const;

 private:
  CgroupHierarchy(CgroupVersion version, os::Directory memory, std::optional<os::Directory> pids)
      : version_(version), memory_(std::move(memory)), pids_(std::move(pids)) {}

  CgroupVersion version_;
  os::Directory memory_;
  std::optional<os::Directory> pids_;  // its own tree, of v1
};

}  // namespace evictd::node
