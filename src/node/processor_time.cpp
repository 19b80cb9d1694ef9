#include "node/processor_time.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>

#include "os/directory.hpp"
#include "os/numbers.hpp"

namespace evictd::node {

os::FileResult<core::Duration> processor_time(const CgroupHierarchy& hierarchy, std::string_view cgroup) {
  if (hierarchy.version() == CgroupVersion::v2) {
    const auto file = hierarchy.memory_file(cgroup, "cpu.stat");
    if (!file) return std::unexpected(file.error());
    std::array<char, 4096> buffer;
    const auto text = file->read(buffer);
    if (!text) return std::unexpected(text.error());
    if (const auto used = os::find_number(*text, "usage_usec")) return std::chrono::microseconds(*used);
    return std::unexpected(os::content_error(file->path(), "has no usage_usec"));
  }
  const auto root = os::Directory::open(std::filesystem::path(hierarchy.root().path()).parent_path() / "cpuacct");
  if (!root) return std::unexpected(root.error());
  const auto directory = root->subdirectory(cgroup.substr(std::min(cgroup.find_first_not_of('/'), cgroup.size())));
  if (!directory) return std::unexpected(directory.error());
  const auto file = directory->file("cpuacct.usage");
  if (!file) return std::unexpected(file.error());
  const auto used = file->read_number();
  if (!used) return std::unexpected(used.error());
  return core::Duration(*used);
}

}  // namespace evictd::node
