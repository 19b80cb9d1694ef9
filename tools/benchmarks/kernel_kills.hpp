#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

#include "os/file_descriptor.hpp"

namespace bench {

/// Whether the kernel's OOM killer has killed below the node since this object was made. On v1 each cgroup counts its
/// own processes and takes the count with it when it goes, so it must be looked at all the time.
class KernelKills {
 public:
  /// The node's memory cgroup, and on v1 all that are below it now. Fails where they cannot be read.
  explicit KernelKills(const std::filesystem::path& node);

  /// Whether there have been any.
  bool look();

 private:
  std::vector<evictd::os::FileDescriptor> files_;
  std::vector<std::int64_t> before_;
  bool any_ = false;
};

/// Has the machine give so much memory once. A virtual machine has pages that it used before at once, and fresh ones
/// slowly: without this no hog would be fast.
void warm_memory(std::int64_t bytes);

}  // namespace bench
