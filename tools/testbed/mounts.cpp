#include "testbed/mounts.hpp"

#include <mntent.h>
#include <sys/mount.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>

#include "testbed/failure.hpp"
#include "testbed/files.hpp"

namespace testbed {

std::vector<std::filesystem::path> mounts_below(const std::filesystem::path& directory) {
  const std::unique_ptr<FILE, decltype(&::endmntent)> table{::setmntent("/proc/self/mounts", "re"), ::endmntent};
  if (!table) fail_errno("/proc/self/mounts");
  std::vector<std::filesystem::path> result;
  while (const mntent* entry = ::getmntent(table.get())) {
    if (is_below(entry->mnt_dir, directory)) result.emplace_back(entry->mnt_dir);
  }
  std::ranges::reverse(result);
  return result;
}

void unmount_below(const std::filesystem::path& directory) {
  for (const auto& mount : mounts_below(directory)) {
    if (::umount2(mount.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) != 0 && errno != EINVAL && errno != ENOENT) {
      fail_errno("unmounting " + mount.native());
    }
  }
}

}  // namespace testbed
