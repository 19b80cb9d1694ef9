#include "wake/inotify_trees.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "os/beneath.hpp"
#include "os/directory.hpp"
#include "os/file_descriptor.hpp"
#include "os/file_error.hpp"
#include "wake/source.hpp"

namespace asio = boost::asio;

namespace evictd::wake {
namespace {

constexpr std::uint32_t inotify_changes = IN_MODIFY | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO;

/// Not there, something else by now, or on another file system.
bool is_none(int code) { return code == ENOENT || code == ENOTDIR || code == ELOOP || code == EXDEV; }

/// Which of the pod's own directories this lies in.
const std::string& own_directory(const std::vector<std::string>& own, const std::string& one) {
  const auto holds = [&](const std::string& directory) {
    return one.starts_with(directory) && (one.size() == directory.size() || one[directory.size()] == '/');
  };
  const auto found = std::ranges::find_if(own, holds);
  return found == own.end() ? one : *found;
}

os::FileError no_more_for_pods() {
  return {Error{"pods have half of all inotify watches, and get no more; raise fs.inotify.max_user_watches"}, ENOSPC};
}

std::size_t half_of(const std::filesystem::path& limit) {
  std::size_t watches = 8192;  // the least that the kernel begins with
  std::ifstream{limit} >> watches;
  return watches / 2;
}

/// By no symbolic link below `top`, and through no mount but those right in it: volumes are mounted there.
os::FileDescriptor open_within(const std::string& top, const std::string& directory) {
  constexpr int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
  os::FileDescriptor opened{::open(top.c_str(), flags)};
  if (!opened || directory == top) return opened;
  const auto relative = directory.substr(top.size() + 1);
  const auto slash = relative.find('/');
  opened = os::FileDescriptor{::openat(opened.get(), relative.substr(0, slash).c_str(), flags)};
  if (!opened || slash == std::string::npos) return opened;
  return os::open_beneath(opened.get(), relative.substr(slash + 1));
}

}  // namespace

InotifyTrees::InotifyTrees(const asio::any_io_executor& reactor, OnChange on_change, std::filesystem::path limit)
    : on_change_{std::move(on_change)}, limit_{std::move(limit)}, inotify_{reactor, pause, *this} {}

os::FileResult<void> InotifyTrees::watch(const WatchedPods& pods) {
  std::map<std::string, Pod, std::less<>> next;
  for (const auto& files : pods) {
    auto& pod = next[files->uid];
    if (auto known = pods_.extract(files->uid)) pod = std::move(known.mapped());
    const auto before = std::exchange(pod.files, files);
    if (before == files || (before != nullptr && before->directories == files->directories)) continue;
    pod.complete = false;
    pod.has_more = false;
  }
  pods_.swap(next);
  most_together_ = half_of(limit_);
  forget([&](const std::string& uid) { return !pods_.contains(uid); });

  os::FileResult<void> result;
  for (auto& [uid, pod] : pods_) {
    if (pod.complete) continue;
    auto entries_left = most_entries;
    const auto looked = look_through(pod, uid, entries_left);
    if (looked) continue;
    on_change_(uid);
    if (result) result = looked;
  }
  return result;
}

/// Watches all that is there, as far as it may be. The error is the first one; what it is about is looked for again.
os::FileResult<void> InotifyTrees::look_through(Pod& pod, const std::string& uid, std::size_t& entries_left) {
  os::FileResult<void> result;
  pod.complete = true;
  pod.has_more = false;
  for (const auto& directory : pod.files->directories) {
    const auto added = add_tree(pod, uid, directory, entries_left);
    pod.complete = pod.complete && added.value_or(false);
    if (!added && result) result = std::unexpected(added.error());
  }
  return result;
}

/// True where the tree is watched, as far as one may be, false where `root` does not exist yet. Without recursion: pods
/// decide how deep their trees are.
os::FileResult<bool> InotifyTrees::add_tree(Pod& pod, const std::string& uid, const std::string& root,
                                            std::size_t& entries_left) {
  const auto& top = own_directory(pod.files->directories, root);
  std::vector<std::string> pending{root};
  std::vector<std::string> names;
  bool exists = true;
  while (!pending.empty()) {
    const auto directory = std::move(pending.back());
    pending.pop_back();
    // The pod's own directories are few, and each of them is watched, whatever other pods have.
    if (pod.watches >= most_watches || (entries_left == 0 && directory != top)) {
      pod.has_more = true;
      break;
    }
    if (directory.size() - top.size() > longest_path) {
      pod.has_more = true;
      continue;
    }
    auto opened = open_within(top, directory);
    const auto watch =
        opened ? inotify_.add(opened, inotify_changes, directory) : std::unexpected(os::system_error(errno, directory));
    if (!watch) {
      if (!is_none(watch.error().code)) return std::unexpected(watch.error());
      exists = exists && directory != root;
      continue;
    }
    const bool is_new = !owners_.contains(*watch);
    if (is_new && owners_.size() >= most_together_ && directory != top) {
      inotify_.remove(*watch);
      return std::unexpected(no_more_for_pods());
    }
    owners_.insert_or_assign(*watch, Watched{uid, directory});
    if (is_new) ++pod.watches;
    names.clear();
    if (!os::list_directories(std::move(opened), directory, entries_left, names).value_or(false)) pod.has_more = true;
    for (const auto& name : names) pending.push_back(directory + '/' + name);
  }
  return exists;
}

void InotifyTrees::forget(const std::function<bool(const std::string& uid)>& is_gone) {
  for (auto entry = owners_.begin(); entry != owners_.end();) {
    if (!is_gone(entry->second.uid)) {
      ++entry;
      continue;
    }
    inotify_.remove(entry->first);
    entry = owners_.erase(entry);
  }
}

void InotifyTrees::on_event(const os::Inotify::Event& event) {
  if ((event.mask & IN_Q_OVERFLOW) != 0) return lost_events();
  const auto owner = owners_.find(event.watch);
  if (owner == owners_.end()) return;
  const auto [uid, directory] = owner->second;
  const auto pod = pods_.find(uid);
  if ((event.mask & IN_IGNORED) != 0) {
    owners_.erase(owner);
    if (pod != pods_.end()) lost_watch(pod->second, directory);
    return;
  }
  changed_.insert(uid);
  const bool new_directory = (event.mask & IN_ISDIR) != 0 && (event.mask & (IN_CREATE | IN_MOVED_TO)) != 0;
  if (!new_directory || pod == pods_.end()) return;
  if (!add_tree(pod->second, uid, fmt::format("{}/{}", directory, event.name), entries_left_))
    pod->second.complete = false;
  if (entries_left_ == 0) fall_behind(pod->second, uid);
}

/// One of the pod's own directories is looked for again. Any other's going was an event of the one above.
void InotifyTrees::lost_watch(Pod& pod, const std::string& directory) {
  if (pod.watches > 0) --pod.watches;
  if (std::ranges::find(pod.files->directories, directory) == pod.files->directories.end()) return;
  pod.complete = false;
  pod.has_more = false;
}

/// Directories may have come unseen.
void InotifyTrees::lost_events() {
  for (auto& [uid, pod] : pods_) {
    changed_.insert(uid);
    fall_behind(pod, uid);
  }
}

/// The pod is looked through again after this batch or a later one, at the latest when the pods are listed.
void InotifyTrees::fall_behind(Pod& pod, const std::string& uid) {
  pod.complete = false;
  if (std::exchange(pod.behind, true)) return;
  behind_.push_back(uid);
}

/// As many pods as the entries of a batch suffice for, the one that waited longest first: no pod is in the others' way.
void InotifyTrees::catch_up() {
  for (auto waiting = behind_.size(); waiting > 0 && entries_left_ > 0; --waiting) {
    const auto uid = std::move(behind_.front());
    behind_.pop_front();
    const auto pod = pods_.find(uid);
    if (pod == pods_.end() || !std::exchange(pod->second.behind, false) || pod->second.complete) continue;
    const bool had_all = entries_left_ == most_entries;
    static_cast<void>(
        look_through(pod->second, uid, entries_left_));  // what is wrong is reported when the pods are listed
    if (entries_left_ == 0 && !had_all) fall_behind(pod->second, uid);
  }
}

void InotifyTrees::report() {
  entries_left_ = most_entries;
  catch_up();
  for (const auto& uid : changed_) on_change_(uid);
  changed_.clear();
}

std::string InotifyTrees::describe() const {
  const auto cut_off = std::ranges::count_if(pods_, [](const auto& entry) { return entry.second.has_more; });
  return fmt::format("inotify on {} directories{}", owners_.size(),
                     cut_off == 0 ? "" : fmt::format(", more than it may watch in {} pods", cut_off));
}

}  // namespace evictd::wake
