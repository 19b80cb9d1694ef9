#include "evict/pod_logs.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "os/beneath.hpp"
#include "os/directory.hpp"
#include "os/file_descriptor.hpp"
#include "os/now.hpp"

namespace evictd::evict {
namespace {

/// A log directory has two levels; what is deeper than this nobody's log rotation made.
constexpr int deepest_logs = 32;

/// How many entries are listed before they are removed: what is kept in memory is bounded, however many there are.
constexpr std::size_t log_batch = 1000;

bool is_one_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && !name.contains('/') && !name.contains('\0');
}

/// Without slashes at its end.
std::string as_prefix(const std::filesystem::path& root) {
  auto text = root.lexically_normal().native();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

os::FileError cannot_open(int code, const std::string& path) {
  if (code != ENOSYS && code != EPERM) return os::system_error(code, path);
  return {{fmt::format("{}: is left alone: without openat2 (Linux 5.6) logs cannot be removed safely", path)}, code};
}

/// The names in a directory that is open, at most `most` of those that `wanted` names.
template <class Wanted>
os::FileResult<std::vector<std::string>> entries(int directory, const std::string& path, std::size_t most,
                                                 Wanted wanted) {
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
    if (name != "." && name != ".." && wanted(name)) names.emplace_back(name);
  }
  return names;
}

/// One removal of a tree.
class Removal {
 public:
  Removal(LogsRemoved& removed, core::Instant give_up) : removed_{removed}, give_up_{give_up} {}

  /// Whether the directory is empty afterwards. It may be filled meanwhile: that ends with the time.
  bool clear(int directory, const std::string& path, int depth) {
    for (;;) {
      const auto names = entries(directory, path, log_batch, [](std::string_view) { return true; });
      if (!names) return failed(names.error());
      if (names->empty()) return true;
      bool advanced = false;
      for (const auto& name : *names) {
        if (os::now() >= give_up_) return failed({{path + ": there was no time to remove all of it"}, ETIME});
        advanced = remove(directory, name, path + "/" + name, depth) || advanced;
      }
      if (!advanced) return false;
    }
  }

  /// Whether it is gone.
  bool remove(int parent, const std::string& name, const std::string& path, int depth) {
    if (::unlinkat(parent, name.c_str(), 0) == 0) {
      ++removed_.files;
      return true;
    }
    if (errno == ENOENT) return true;
    if (errno != EISDIR) return failed(os::system_error(errno, path));
    return remove_directory(parent, name, path, depth);
  }

  bool remove_directory(int parent, const std::string& name, const std::string& path, int depth) {
    if (depth <= 0) return failed({{path + ": lies too deep for a log"}, ELOOP});
    const auto opened = os::open_only_beneath(parent, name);
    if (!opened) return errno == ENOENT || failed(cannot_open(errno, path));
    if (!clear(opened.get(), path, depth - 1)) return false;
    return ::unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT ||
           failed(os::system_error(errno, path));
  }

 private:
  bool failed(os::FileError error) {
    if (!removed_.error) removed_.error = std::move(error);
    return false;
  }

  LogsRemoved& removed_;
  core::Instant give_up_;
};

}  // namespace

std::optional<LogFile> locate_log(const std::filesystem::path& root, std::string_view pod_directory,
                                  std::uint32_t attempt, std::string_view log_path) {
  if (!is_one_name(pod_directory)) return std::nullopt;
  const auto prefix = fmt::format("{}/{}/", as_prefix(root), pod_directory);
  if (!log_path.starts_with(prefix)) return std::nullopt;
  log_path.remove_prefix(prefix.size());
  const auto slash = log_path.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto container = log_path.substr(0, slash);
  const auto name = log_path.substr(slash + 1);
  if (!is_one_name(container) || name != fmt::format("{}.log", attempt)) return std::nullopt;
  return LogFile{.directory = fmt::format("{}/{}", pod_directory, container), .name = std::string(name)};
}

LogsRemoved remove_log(const std::filesystem::path& root, const LogFile& log) {
  LogsRemoved removed;
  const auto all = os::Directory::open(root);
  if (!all) {
    if (!all.error().is_gone()) removed.error = all.error();
    return removed;
  }
  const auto path = fmt::format("{}/{}", as_prefix(root), log.directory);
  const auto opened = os::open_only_beneath(all->descriptor(), log.directory);
  if (!opened) {
    if (errno != ENOENT) removed.error = cannot_open(errno, path);
    return removed;
  }
  const auto names = entries(opened.get(), path, log_batch, [&](std::string_view name) {
    return name == log.name || name.starts_with(log.name + ".");
  });
  if (!names) {
    removed.error = names.error();
    return removed;
  }
  for (const auto& name : *names) {
    if (::unlinkat(opened.get(), name.c_str(), 0) == 0)
      ++removed.files;
    else if (errno != ENOENT && !removed.error)
      removed.error = os::system_error(errno, path + "/" + name);
  }
  return removed;
}

std::string_view uid_of_log_directory(std::string_view name) {
  const auto last = name.rfind('_');
  if (!is_one_name(name) || last == std::string_view::npos || name.find('_') == last) return {};
  return name.substr(last + 1);
}

os::FileResult<std::vector<std::string>> log_directories(const std::filesystem::path& root) {
  const auto all = os::Directory::open(root);
  if (!all && all.error().is_gone()) return std::vector<std::string>{};
  if (!all) return std::unexpected(all.error());
  auto names = all->subdirectories();
  if (names) std::erase_if(*names, [](const std::string& name) { return uid_of_log_directory(name).empty(); });
  return names;
}

LogsRemoved remove_log_directory(const std::filesystem::path& root, const std::string& name, core::Instant give_up) {
  LogsRemoved removed;
  const auto all = os::Directory::open(root);
  if (!all) {
    if (!all.error().is_gone()) removed.error = all.error();
    return removed;
  }
  const auto path = fmt::format("{}/{}", as_prefix(root), name);
  if (!is_one_name(name)) {
    removed.error = os::system_error(EINVAL, path);
    return removed;
  }
  static_cast<void>(Removal{removed, give_up}.remove_directory(all->descriptor(), name, path, deepest_logs));
  return removed;
}

}  // namespace evictd::evict
