#include "evict/pod_logs.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "os/beneath.hpp"
#include "os/directory.hpp"

namespace evictd::evict {
namespace {

/// How many files of one log are looked at: its rotation leaves a handful.
constexpr std::size_t most_of_a_log = 1000;

/// Without slashes at its end.
std::string as_prefix(const std::filesystem::path& root) {
  auto text = root.lexically_normal().native();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

}  // namespace

std::optional<LogFile> locate_log(const std::filesystem::path& root, std::string_view pod_directory,
                                  std::uint32_t attempt, std::string_view log_path) {
  if (!os::is_one_name(pod_directory)) return std::nullopt;
  const auto prefix = fmt::format("{}/{}/", as_prefix(root), pod_directory);
  if (!log_path.starts_with(prefix)) return std::nullopt;
  log_path.remove_prefix(prefix.size());
  const auto slash = log_path.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto container = log_path.substr(0, slash);
  const auto name = log_path.substr(slash + 1);
  if (!os::is_one_name(container) || name != fmt::format("{}.log", attempt)) return std::nullopt;
  return LogFile{.directory = fmt::format("{}/{}", pod_directory, container), .name = std::string(name)};
}

Removed remove_log(const std::filesystem::path& root, const LogFile& log) {
  Removed removed;
  const auto all = os::Directory::open(root);
  if (!all) {
    if (!all.error().is_gone()) removed.error = all.error();
    return removed;
  }
  const auto path = fmt::format("{}/{}", as_prefix(root), log.directory);
  const auto opened = open_for_removal(all->descriptor(), log.directory, path);
  if (!opened) {
    if (!opened.error().is_gone()) removed.error = opened.error();
    return removed;
  }
  const auto names = names_in(opened->get(), path, most_of_a_log, log.name);
  if (!names) {
    removed.error = names.error();
    return removed;
  }
  for (const auto& name : *names) {
    if (name != log.name && !name.starts_with(log.name + ".")) continue;
    if (::unlinkat(opened->get(), name.c_str(), 0) == 0)
      ++removed.files;
    else if (errno != ENOENT && !removed.error)
      removed.error = os::system_error(errno, path + "/" + name);
  }
  return removed;
}

std::string_view uid_of_log_directory(std::string_view name) {
  const auto last = name.rfind('_');
  if (!os::is_one_name(name) || last == std::string_view::npos || name.find('_') == last) return {};
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

Removed remove_log_directory(const std::filesystem::path& root, const std::string& name, core::Instant give_up) {
  Removed removed;
  const auto all = os::Directory::open(root);
  if (!all) {
    if (!all.error().is_gone()) removed.error = all.error();
    return removed;
  }
  const auto path = fmt::format("{}/{}", as_prefix(root), name);
  if (!os::is_one_name(name)) {
    removed.error = os::system_error(EINVAL, path);
    return removed;
  }
  TreeRemoval{removed, give_up}.remove_directory(all->descriptor(), name, path);
  return removed;
}

}  // namespace evictd::evict
