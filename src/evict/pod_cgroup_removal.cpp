#include "evict/pod_cgroup_removal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <utility>
#include <vector>

#include "os/directory.hpp"
#include "pods/cgroup_name.hpp"

namespace evictd::evict {
namespace {

constexpr int deepest_removed = 32;
constexpr std::size_t most_removed = 4096;

/// One cgroup by its name in the one above, after those below it. `budget`: how many entries may still be looked at,
/// the cgroups' files among them.
os::FileResult<bool> remove_tree(const os::Directory& above, const std::string& name, int depth, std::size_t& budget) {
  const auto directory = above.own_subdirectory(name);
  if (!directory && directory.error().is_gone()) return true;
  if (!directory) return std::unexpected(directory.error());
  auto listing = directory->own_subdirectory(".");  // its own position
  if (!listing) return std::unexpected(listing.error());

  std::vector<std::string> below;
  const auto all = os::list_directories(listing->take_descriptor(), directory->path(), budget, below);
  if (!all) return std::unexpected(all.error());
  if (!*all || (depth == 0 && !below.empty())) return false;
  bool empty = true;
  for (const auto& child : below) {
    const auto removed = remove_tree(*directory, child, depth - 1, budget);
    if (!removed) return removed;
    empty = empty && *removed;
  }
  if (!empty) return false;
  if (::unlinkat(above.descriptor(), name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return true;
  if (errno == EBUSY || errno == ENOTEMPTY) return false;
  return std::unexpected(os::system_error(errno, directory->path()));
}

/// In one hierarchy. What lies above the pod's cgroup stays, empty or not.
os::FileResult<bool> remove_in(const std::string& root, std::string_view cgroup) {
  constexpr std::size_t files_in_a_cgroup = 64;
  auto above = os::Directory::open(root);
  for (;;) {
    if (!above && above.error().is_gone()) return true;
    if (!above) return std::unexpected(above.error());
    cgroup.remove_prefix(1);
    const auto end = cgroup.find('/');
    const std::string part(cgroup.substr(0, end));
    if (end == std::string_view::npos) {
      auto budget = most_removed * files_in_a_cgroup;
      return remove_tree(*above, part, deepest_removed, budget);
    }
    auto next = above->own_subdirectory(part);
    above = std::move(next);
    cgroup.remove_prefix(end);
  }
}

/// With v1 each controller has a tree of its own beside the memory controller's; links to them do not count, nor where
/// none is mounted: crun leaves files of its own there, which nobody ever removes.
std::vector<std::string> trees(const std::string& root, node::CgroupVersion version) {
  if (version == node::CgroupVersion::v2) return {root};
  const auto mount = std::filesystem::path(root).parent_path();
  const auto opened = os::Directory::open(mount);
  const auto names = opened ? opened->subdirectories() : std::unexpected(opened.error());
  if (!names) return {root};
  std::vector<std::string> result;
  for (const auto& name : *names)
    if (opened->has(name + "/cgroup.procs")) result.push_back((mount / name).native());
  return result;
}

}  // namespace

bool is_removable(std::string_view cgroup, std::string_view uid, std::string_view pods_cgroup) {
  return !uid.empty() && cgroup.substr(cgroup.rfind('/') + 1) == fmt::format("pod{}", uid) &&
         !cgroup.ends_with(".slice") && pods::is_below(cgroup, pods_cgroup);
}

os::FileResult<bool> remove_pod_cgroup(const std::string& root, node::CgroupVersion version,
                                       const std::string& cgroup) {
  bool gone = true;
  for (const auto& tree : trees(root, version)) {
    const auto removed = remove_in(tree, cgroup);
    if (!removed) return removed;
    gone = gone && *removed;
  }
  return gone;
}

}  // namespace evictd::evict
