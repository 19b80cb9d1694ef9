#include "node/cgroup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "os/file_error.hpp"

namespace evictd::node {
namespace {

/// Whether the directory is the root of a v2 tree that has the controller: cgroup.controllers is a line of names.
os::FileResult<bool> has_controller(const os::Directory& tree, std::string_view name) {
  const auto file = tree.file("cgroup.controllers");
  if (!file) {
    if (file.error().is_gone()) return false;
    return std::unexpected(file.error());
  }
  std::array<char, 1024> buffer;
  const auto line = file->read(buffer);
  if (!line) return std::unexpected(line.error());
  for (auto rest = *line; !rest.empty();) {
    const auto end = rest.find_first_of(" \n");
    if (rest.substr(0, end) == name) return true;
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
  }
  return false;
}

std::optional<os::Directory> v1_pids(const os::Directory& mount) {
  auto pids = mount.subdirectory("pids");
  return pids ? std::optional(*std::move(pids)) : std::nullopt;
}

std::string_view relative(std::string_view cgroup) {
  return cgroup.substr(std::min(cgroup.find_first_not_of('/'), cgroup.size()));
}

os::FileResult<os::Directory> below(const os::Directory& tree, std::string_view cgroup) {
  auto directory = tree.subdirectory(relative(cgroup));
  if (!directory && directory.error().is_gone())
    return std::unexpected(
        os::FileError{Error{fmt::format("no cgroup \"{}\" in {}", cgroup, tree.path())}, directory.error().code});
  return directory;
}

}  // namespace

std::string_view name(CgroupVersion version) { return version == CgroupVersion::v1 ? "cgroup v1" : "cgroup v2"; }

Result<CgroupHierarchy> CgroupHierarchy::detect(const std::filesystem::path& mount) {
  auto root = os::Directory::open(mount);
  if (!root) return std::unexpected(root.error());

  const auto unified = has_controller(*root, "memory");
  if (!unified) return std::unexpected(unified.error());
  if (*unified) return CgroupHierarchy(CgroupVersion::v2, *std::move(root), std::nullopt);

  if (root->has("memory/memory.usage_in_bytes")) {
    auto memory = root->subdirectory("memory");
    if (!memory) return std::unexpected(memory.error());
    return CgroupHierarchy(CgroupVersion::v1, *std::move(memory), v1_pids(*root));
  }

  if (auto hybrid = root->subdirectory("unified")) {
    const auto memory = has_controller(*hybrid, "memory");
    if (!memory) return std::unexpected(memory.error());
    // A controller is in one tree only.
    auto pids = has_controller(*hybrid, "pids").value_or(true) ? std::nullopt : v1_pids(*root);
    if (*memory) return CgroupHierarchy(CgroupVersion::v2, *std::move(hybrid), std::move(pids));
  }
  return fail(
      fmt::format("{}: no memory controller, neither of cgroup v2 (\"memory\" in cgroup.controllers) nor of v1 "
                  "(memory/memory.usage_in_bytes); "
                  "mount the cgroup hierarchy or boot with cgroup_enable=memory",
                  mount.native()));
}

os::FileResult<os::Directory> CgroupHierarchy::memory(std::string_view cgroup) const { return below(memory_, cgroup); }

os::FileResult<os::KeptFile> CgroupHierarchy::memory_file(std::string_view cgroup, std::string_view name) const {
  const auto directory = relative(cgroup);
  return memory_.file(directory.empty() ? std::string(name) : fmt::format("{}/{}", directory, name));
}

std::uint64_t CgroupHierarchy::memory_inode(std::string_view cgroup) const {
  return memory_.inode_of(relative(cgroup));
}

os::FileResult<os::Directory> CgroupHierarchy::pids(std::string_view cgroup) const {
  if (!pids_ && version_ == CgroupVersion::v2) return memory(cgroup);
  if (!pids_) return std::unexpected(os::FileError{Error{"the host has no pids controller"}, ENOENT});
  return below(*pids_, cgroup);
}

}  // namespace evictd::node
