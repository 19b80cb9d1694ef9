#include "evict/tree_removal.hpp"

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

using Listing = std::unique_ptr<DIR, int (*)(DIR*)>;

/// By a descriptor of its own, whose position begins at the front. Null where it cannot be listed, which errno tells.
Listing list(int directory) {
  os::FileDescriptor opened{::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  Listing listing{opened ? ::fdopendir(opened.get()) : nullptr, &::closedir};
  if (listing) static_cast<void>(opened.release());
  return listing;
}

/// Null at the end, and where errno is not 0.
const dirent* next_in(DIR* listing) {
  for (;;) {
    errno = 0;
    const auto* entry = ::readdir(listing);
    if (entry == nullptr) return nullptr;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") return entry;
  }
}

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
    return std::unexpected(os::FileError{
        {fmt::format(
            "{}: is left alone: nothing can be removed safely before Linux 5.6, or 5.8 where a sandbox refuses "
            "openat2",
            path)},
        code});
  return std::unexpected(os::system_error(code, path));
}

os::FileResult<std::vector<std::string>> names_in(int directory, const std::string& path, std::size_t most,
                                                  std::string_view prefix) {
  const auto listing = list(directory);
  if (!listing) return std::unexpected(os::system_error(errno, path));
  std::vector<std::string> names;
  while (names.size() < most) {
    const auto* entry = next_in(listing.get());
    if (entry == nullptr && errno != 0) return std::unexpected(os::system_error(errno, path));
    if (entry == nullptr) break;
    if (std::string_view(entry->d_name).starts_with(prefix)) names.emplace_back(entry->d_name);
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
  const auto listing = list(level.directory);
  return listing ? remove_all_of(listing.get(), level) : failed(os::system_error(errno, level.path));
}

/// What is removed is listed no more, so each name is come to once, however many there are; and from the front again,
/// for what has come meanwhile and what a file system has passed over.
bool TreeRemoval::remove_all_of(DIR* listing, Level& level) {
  for (;;) {
    bool any = false;
    bool advanced = false;
    while (const auto* entry = next_in(listing)) {
      any = true;
      if (os::now() >= give_up_) return failed_for_time(level.path);
      advanced = remove(level, entry->d_name) || advanced;
    }
    if (errno != 0) return failed(os::system_error(errno, level.path));
    if (!any) return true;
    if (!advanced) return false;
    ::rewinddir(listing);
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
  struct stat moved{};
  if (::fstat(opened->get(), &moved) != 0) return failed(os::system_error(errno, path));
  // By its number, which is nobody else's; but somebody may have made that very name.
  for (unsigned attempt = 0; os::now() < give_up_; ++attempt) {
    const auto new_name = fmt::format(".evictd-{}-{}", moved.st_ino, attempt);
    if (::renameat2(level.directory, name.c_str(), top_, new_name.c_str(), RENAME_NOREPLACE) == 0) return true;
    if (errno != EEXIST) return errno == ENOENT || failed(os::system_error(errno, path));
  }
  return failed_for_time(path);
}

bool TreeRemoval::unlink(Level& level, const std::string& name, int flags) {
  if (::unlinkat(level.directory, name.c_str(), flags) == 0) return true;
  const int code = errno;
  const bool may_try_again = is_forbidden(code) && !std::exchange(level.is_own, true) && make_own(level.directory);
  if (may_try_again) return ::unlinkat(level.directory, name.c_str(), flags) == 0;
  errno = code;
  return false;
}

bool TreeRemoval::failed_for_time(const std::string& path) {
  removed_.out_of_time = true;
  return failed({{path + ": there was no time to remove all of it"}, ETIME});
}

bool TreeRemoval::failed(os::FileError error) {
  if (!removed_.error) removed_.error = std::move(error);
  return false;
}

}  // namespace evictd::evict
