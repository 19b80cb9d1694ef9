#pragma once
#include <cstddef>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "admission/allocation/resource_allocator.hpp"
#include "admission/pod_allocation.hpp"
#include "core/error.hpp"

namespace evictd::node {

/// No file that evictd writes is larger, and a larger one is not read. What plugins say of all containers is at most
/// 4 MiB (agent::most_edits), which JSON makes at most sixfold; all ids of a list of 16384 devices are another 8 MiB.
/// So large a file takes a second to read.
inline constexpr std::size_t largest_allocation_file = std::size_t{64} << 20;

/// Keeps what pods were given in a file, so that evictd can start anew under running pods. Every call reads or writes
/// the disk: not for the reactor's thread.
class AllocationStore {
 public:
  /// An empty path keeps nothing. `boot` tells this boot from others (os::read_boot_id).
  explicit AllocationStore(std::filesystem::path path, std::string boot = {})
      : path_{std::move(path)}, boot_{std::move(boot)} {}

  struct Loaded {
    admission::Allocations allocations{};
    std::set<std::string> plugin_resources{};  ///< that device plugins served
    admission::Coming coming{};                ///< of this boot: those of another do not come any more
    std::optional<Error> set_aside{};          ///< why the file was useless, and what it is called now
  };

  /// What was kept. A file that is not there is nothing kept; one that cannot be understood, or is
  /// larger than `largest_allocation_file`, is renamed to "PATH.unreadable" and told. A file that cannot be read at all
  /// is an error, and so is one whose allocations rest on other policies or another machine than the allocator: "PATH:
  /// …; drain the node and delete the file". (kubelet: the state files of the CPU and memory managers)
  [[nodiscard]] Result<Loaded> load(const admission::ResourceAllocator& allocator) const;

  /// What is too large to be read again is an error as well: the file stays as it is.
  [[nodiscard]] Result<void> save(const admission::Allocations& allocations,
                                  const admission::ResourceAllocator& allocator,
                                  const std::set<std::string>& plugin_resources = {},
                                  const admission::Coming& coming = {}) const;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  [[nodiscard]] Result<Loaded> set_aside(const Error& why) const;

  std::filesystem::path path_;
  std::string boot_;
};

}  // namespace evictd::node
