#include "os/directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <limits>
#include <memory>

namespace evictd::os {
namespace {

constexpr int directory_flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

/// Not every file system says of what kind its entries are.
bool is_directory(int directory, const dirent& entry) {
  if (entry.d_type != DT_UNKNOWN) return entry.d_type == DT_DIR;
  struct stat file{};
  return ::fstatat(directory, entry.d_name, &file, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) == 0 && S_ISDIR(file.st_mode);
}

}  // namespace

FileResult<Directory> Directory::open(const std::filesystem::path& path) {
  FileDescriptor descriptor(::open(path.c_str(), directory_flags));
  if (!descriptor) return std::unexpected(system_error(errno, path.native()));
  return Directory(std::move(descriptor), path.native());
}

std::string Directory::path_of(std::string_view relative) const {
  if (relative.empty()) return path_;
  return fmt::format("{}{}{}", path_, path_.ends_with('/') ? "" : "/", relative);
}

FileResult<Directory> Directory::subdirectory(std::string_view relative) const {
  const auto name = relative.empty() ? std::string(".") : std::string(relative);
  FileDescriptor descriptor(::openat(descriptor_.get(), name.c_str(), directory_flags));
  if (!descriptor) return std::unexpected(system_error(errno, path_of(relative)));
  return Directory(std::move(descriptor), path_of(relative));
}

FileResult<Directory> Directory::own_subdirectory(std::string_view name) const {
  FileDescriptor descriptor(::openat(descriptor_.get(), std::string(name).c_str(), directory_flags | O_NOFOLLOW));
  if (!descriptor) return std::unexpected(system_error(errno, path_of(name)));
  return Directory(std::move(descriptor), path_of(name));
}

FileResult<KeptFile> Directory::file(std::string_view relative) const {
  FileDescriptor descriptor(::openat(descriptor_.get(), std::string(relative).c_str(), O_RDONLY | O_CLOEXEC));
  if (!descriptor) return std::unexpected(system_error(errno, path_of(relative)));
  return KeptFile(std::move(descriptor), path_of(relative));
}

std::uint64_t Directory::inode_of(std::string_view relative) const {
  struct stat status{};
  return ::fstatat(descriptor_.get(), std::string(relative).c_str(), &status, AT_EMPTY_PATH) == 0 ? status.st_ino : 0;
}

bool Directory::has(std::string_view relative) const {
  return ::faccessat(descriptor_.get(), std::string(relative).c_str(), F_OK, 0) == 0;
}

FileResult<std::vector<std::string>> Directory::subdirectories() const {
  auto names = subdirectories_within(std::numeric_limits<std::size_t>::max());
  if (!names) return std::unexpected(names.error());
  return *std::move(*names);
}

FileResult<std::optional<std::vector<std::string>>> Directory::subdirectories_within(std::size_t entries) const {
  // A descriptor of its own: a listing moves the position of the one it reads from.
  FileDescriptor descriptor(::openat(descriptor_.get(), ".", directory_flags));
  if (!descriptor) return std::unexpected(system_error(errno, path_));
  std::vector<std::string> names;
  const auto listed = list_directories(std::move(descriptor), path_, entries, names);
  if (!listed) return std::unexpected(listed.error());
  if (!*listed) return std::nullopt;
  std::ranges::sort(names);
  return names;
}

FileResult<bool> list_directories(FileDescriptor opened, std::string_view path, std::size_t& entries_left,
                                  std::vector<std::string>& names) {
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::fdopendir(opened.get()), &::closedir);
  if (!listing) return std::unexpected(system_error(errno, path));
  const int descriptor = opened.release();
  for (;;) {
    errno = 0;
    const auto* entry = ::readdir(listing.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (entries_left == 0) return false;
    --entries_left;
    if (is_directory(descriptor, *entry)) names.emplace_back(name);
  }
  if (errno != 0) return std::unexpected(system_error(errno, path));
  return true;
}

}  // namespace evictd::os
