#include "evict/tree_removal.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "os/beneath.hpp"
#include "os/now.hpp"

namespace evictd::evict {
namespace {

/// What lies deeper is moved up: each level takes a descriptor and room on the stack.
constexpr int deepest_removed_in_place = 32;

/// How many names of a directory are listed before they are removed.
constexpr std::size_t names_at_a_time = 1000;

bool make_own(int directory) {
  constexpr mode_t all_for_the_owner = 0700;
  return ::fchown(directory, ::geteuid(), static_cast<gid_t>(-1)) == 0 && ::fchmod(directory, all_for_the_owner) == 0;
}

bool is_forbidden(int code) { return code == EACCES || code == EPERM; }

}  // namespace

os::FileResult<os::FileDescriptor> open_for_removal(int parent, const std::string& relative, const std::string& path) {
  auto opened = os::open_only_beneath(parent, relative);
  if (opened) return opened;
  const int code = errno;
  if (code == EXDEV)
    return std::unexpected(os::FileError{{fmt::format("{}: is left alone: something is mounted there", path)}, code});
  if (code == ENOSYS)
    return std::unexpected(
        os::FileError{{fmt::format("{}: is left alone: before Linux 5.6 nothing can be removed safely", path)}, code});
  return std::unexpected(os::system_error(code, path));
}

os::FileResult<std::vector<std::string>> names_in(int directory, const std::string& path, std::size_t most,
                                                  std::string_view prefix) {
  // A descriptor of its own, whose position begins at the front.
  os::FileDescriptor opened{::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!opened) return std::unexpected(os::system_error(errno, path));
  const std::unique_ptr<DIR, int (*)(DIR*)> listing{::fdopendir(opened.get()), &::closedir};
  if (!listing) return std::unexpected(os::system_error(errno, path));
  static_cast<void>(opened.release());
  std::vector<std::string> names;
  while (names.size() < most) {
    errno = 0;
    const auto* entry = ::readdir(listing.get());
    if (entry == nullptr && errno != 0) return std::unexpected(os::system_error(errno, path));
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != ".." && name.starts_with(prefix)) names.emplace_back(name);
  }
  return names;
}

void TreeRemoval::remove_directory(int parent, const std::string& name, const std::string& path) {
  const auto opened = open_for_removal(parent, name, path);
  if (!opened) {
    if (!opened.error().is_gone()) failed(opened.error());
    return;
  }
  top_ = opened->get();
  if (!clear(Level{.directory = top_, .path = path, .depth = 0})) return;
  if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) failed(os::system_error(errno, path));
}

void TreeRemoval::clear(int directory, const std::string& path) {
  top_ = directory;
  static_cast<void>(clear(Level{.directory = directory, .path = path, .depth = 0}));
}

/// Whether the directory is empty afterwards. It may be filled meanwhile: that ends with the time.
bool TreeRemoval::clear(Level level) {
  for (;;) {
    const auto names = names_in(level.directory, level.path, names_at_a_time);
    if (!names) return failed(names.error());
    if (names->empty()) return true;
    bool advanced = false;
    for (const auto& name : *names) {
      if (os::now() >= give_up_) return failed({{level.path + ": there was no time to remove all of it"}, ETIME});
      advanced = remove(level, name) || advanced;
    }
    if (!advanced) return false;
  }
}

/// Whether it is not there any more.
bool TreeRemoval::remove(Level& level, const std::string& name) {
  if (unlink(level, name, 0)) {
    ++removed_.files;
    return true;
  }
  if (errno == ENOENT) return true;
  const auto path = level.path + "/" + name;
  if (errno != EISDIR) return failed(os::system_error(errno, path));
  return remove_below(level, name, path);
}

bool TreeRemoval::remove_below(Level& level, const std::string& name, const std::string& path) {
  if (level.depth >= deepest_removed_in_place) return move_to_top(level, name, path);
  {
    const auto opened = open_for_removal(level.directory, name, path);
    if (!opened) return opened.error().is_gone() || failed(opened.error());
    if (!clear(Level{.directory = opened->get(), .path = path, .depth = level.depth + 1})) return false;
  }
  return unlink(level, name, AT_REMOVEDIR) || errno == ENOENT || failed(os::system_error(errno, path));
}

/// To where it is listed soon. The kernel writes its new parent into it, so it has to be evictd's own, too.
bool TreeRemoval::move_to_top(Level& level, const std::string& name, const std::string& path) {
  const auto opened = open_for_removal(level.directory, name, path);
  if (!opened) return opened.error().is_gone() || failed(opened.error());
  for (const int directory : {opened->get(), level.directory, top_})
    if (!make_own(directory)) return failed(os::system_error(errno, path));
  int code = EEXIST;
  while (code == EEXIST && os::now() < give_up_) {
    const auto moved = fmt::format(".evictd-{}", moved_++);
    const int result = ::renameat2(level.directory, name.c_str(), top_, moved.c_str(), RENAME_NOREPLACE);
    code = result == 0 ? 0 : errno;
  }
  return code == 0 || code == ENOENT || failed(os::system_error(code, path));
}

bool TreeRemoval::unlink(Level& level, const std::string& name, int flags) {
  if (::unlinkat(level.directory, name.c_str(), flags) == 0) return true;
  const int code = errno;
  const bool may_try_again = is_forbidden(code) && !std::exchange(level.is_own, true) && make_own(level.directory);
  if (may_try_again) return ::unlinkat(level.directory, name.c_str(), flags) == 0;
  errno = code;
  return false;
}

bool TreeRemoval::failed(os::FileError error) {
  if (!removed_.error) removed_.error = std::move(error);
  return false;
}

}  // namespace evictd::evict
