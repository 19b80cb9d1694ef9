#include "wake/inotify_trees.hpp"

#include <fmt/format.h>

#include <cerrno>

namespace asio = boost::asio;

namespace evictd::wake {
namespace {

constexpr std::uint32_t changes = IN_MODIFY | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DONT_FOLLOW;

bool is_missing(const node::FileError& error) { return error.code == ENOENT || error.code == ENOTDIR; }

node::FileError no_more_watches(const node::FileError& error) {
  if (error.code != ENOSPC) return error;
  return {Error{"no more inotify watches; raise fs.inotify.max_user_watches"}, ENOSPC};
}

}  // namespace

InotifyTrees::InotifyTrees(asio::any_io_executor reactor, OnChange on_change)
    : on_change_{std::move(on_change)},
      inotify_{std::move(reactor),
               pause,
               {.on_event = [this](const Inotify::Event& event) { on_event(event); },
                .on_batch_end = [this] { report(); }}} {}

node::FileResult<void> InotifyTrees::watch(std::span<const PodFiles> pods) {
  std::map<std::string, Pod, std::less<>> next;
  for (const auto& [uid, directories] : pods) {
    const auto known = pods_.find(uid);
    const bool same = known != pods_.end() && known->second.directories == directories;
    next[uid] = {directories, same && known->second.complete};
  }
  pods_.swap(next);
  forget([&](const std::string& uid) { return !pods_.contains(uid); });

  node::FileResult<void> result;
  for (auto& [uid, pod] : pods_) {
    if (pod.complete) continue;
    pod.complete = true;
    for (const auto& directory : pod.directories) {
      const auto added = add_tree(uid, directory);
      pod.complete = pod.complete && added.value_or(false);
      if (added) continue;
      on_change_(uid);
      if (result) result = std::unexpected(no_more_watches(added.error()));
    }
  }
  return result;
}

/// True where the whole tree is watched, false where `root` does not exist yet. Without recursion: pods decide how deep
/// their trees are.
node::FileResult<bool> InotifyTrees::add_tree(const std::string& uid, const std::filesystem::path& root) {
  std::vector<std::filesystem::path> pending{root};
  bool exists = true;
  while (!pending.empty()) {
    const auto directory = std::move(pending.back());
    pending.pop_back();
    const auto watch = inotify_.add(directory, changes);
    if (!watch) {
      if (!is_missing(watch.error())) return std::unexpected(watch.error());
      exists = exists && directory != root;
      continue;
    }
    owners_.insert_or_assign(*watch, Watched{uid, directory});
    std::error_code gone;
    for (std::filesystem::directory_iterator entry{directory, gone}; !gone && entry != end(entry);
         entry.increment(gone)) {
      std::error_code ignored;
      if (entry->symlink_status(ignored).type() == std::filesystem::file_type::directory)
        pending.push_back(entry->path());
    }
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

void InotifyTrees::on_event(const Inotify::Event& event) {
  if ((event.mask & IN_Q_OVERFLOW) != 0) return lost_events();
  const auto owner = owners_.find(event.watch);
  if (owner == owners_.end()) return;
  const auto [uid, directory] = owner->second;
  if ((event.mask & IN_IGNORED) != 0) {
    owners_.erase(owner);
    // One of the pod's own directories: it is looked for again. Any other's going was an event of the one above.
    if (const auto pod = pods_.find(uid);
        pod != pods_.end() && std::ranges::find(pod->second.directories, directory) != pod->second.directories.end())
      pod->second.complete = false;
    return;
  }
  changed_.insert(uid);
  const bool new_directory = (event.mask & IN_ISDIR) != 0 && (event.mask & (IN_CREATE | IN_MOVED_TO)) != 0;
  if (!new_directory || add_tree(uid, directory / event.name)) return;
  if (const auto pod = pods_.find(uid); pod != pods_.end()) pod->second.complete = false;
}

/// Directories may have come unseen: everything is looked through again.
void InotifyTrees::lost_events() {
  for (auto& [uid, pod] : pods_) {
    changed_.insert(uid);
    pod.complete = true;
    for (const auto& directory : pod.directories)
      pod.complete = add_tree(uid, directory).value_or(false) && pod.complete;
  }
}

void InotifyTrees::report() {
  for (const auto& uid : changed_) on_change_(uid);
  changed_.clear();
}

std::string InotifyTrees::describe() const { return fmt::format("inotify on {} directories", owners_.size()); }

}  // namespace evictd::wake
