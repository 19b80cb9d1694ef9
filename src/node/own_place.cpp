#include "node/own_place.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>

#include "os/directory.hpp"
#include "os/file_descriptor.hpp"

namespace evictd::node {
namespace {

/// Where a process is in the unified hierarchy, by the line "0::PATH" of its file; empty where it is not.
std::string cgroup_of(const std::filesystem::path& proc, std::string_view process) {
  std::ifstream file(proc / process / "cgroup");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("0::")) return line.substr(3);
  return {};
}

bool is_delegated(const std::string& directory) {
  std::array<char, 1> value{};
  return ::getxattr(directory.c_str(), "user.delegate", value.data(), value.size()) == 1 && value[0] == '1';
}

std::optional<OwnPlace> delegated_place(const CgroupHierarchy& hierarchy, const std::filesystem::path& proc) {
  if (hierarchy.version() != CgroupVersion::v2) return {};
  const std::filesystem::path own = cgroup_of(proc, "self");
  for (const auto& cgroup : {own, own.parent_path()})
    if (cgroup.has_relative_path() && is_delegated(hierarchy.root().path() + cgroup.native()))
      return OwnPlace{.cgroup = cgroup, .delegated = true};
  return {};
}

os::FileResult<void> write_once(const std::string& path, std::string_view text) {
  const os::FileDescriptor file{::open(path.c_str(), O_WRONLY | O_CLOEXEC)};
  if (!file || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return std::unexpected(os::system_error(errno, path));
  return {};
}

}  // namespace

os::FileResult<OwnPlace> find_own_place(const CgroupHierarchy& hierarchy, const std::string& node_cgroup,
                                        const std::filesystem::path& proc) {
  if (auto delegated = delegated_place(hierarchy, proc)) return *std::move(delegated);
  const auto node = hierarchy.memory(node_cgroup);
  if (!node && node.error().is_gone()) return OwnPlace{.cgroup = node_cgroup};
  if (!node) return std::unexpected(node.error());
  if (::access(node->path().c_str(), W_OK) == 0) return OwnPlace{.cgroup = node_cgroup};
  const int refused = errno;
  return std::unexpected(
      os::FileError{Error{fmt::format("{}: {}, and no cgroup is delegated to evictd (Delegate= in its unit)",
                                      node->path(), os::reason(refused))},
                    refused});
}

os::FileResult<void> prepare_own_place(const CgroupHierarchy& hierarchy, const OwnPlace& place) {
  if (!place.delegated) return {};
  const auto directory = hierarchy.root().path() + place.cgroup;
  const auto below = directory + "/evictd";
  if (::mkdir(below.c_str(), 0755) != 0 && errno != EEXIST) return std::unexpected(os::system_error(errno, below));
  if (auto moved = write_once(below + "/cgroup.procs", "0"); !moved) return moved;  // 0: the process that writes
  return write_once(directory + "/cgroup.subtree_control", "+memory");
}

bool may_run_in(const std::string& cgroup, const std::filesystem::path& proc) {
  // A namespace shows what is not below its root by "..", and there is process 1 unless it is a container's own.
  if (cgroup_of(proc, "1").starts_with("/..")) return true;
  return (cgroup_of(proc, "self") + '/').starts_with(cgroup + '/');
}

}  // namespace evictd::node
