#include "wake/pod_files_watch.hpp"

#include <fmt/format.h>
#include <sys/inotify.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <cerrno>
#include <cstring>

#include "node/file_error.hpp"

namespace asio = boost::asio;

namespace evictd::wake {
namespace {

constexpr std::uint32_t changes =
    IN_MODIFY | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR | IN_DONT_FOLLOW;

}  // namespace

PodFilesWatch::PodFilesWatch(asio::any_io_executor reactor, Wakes& wakes,
                             std::function<void(const std::string& uid)> on_change)
    : notifier_{wakes, "files"}, on_change_{std::move(on_change)}, inotify_{reactor}, pause_{std::move(reactor)} {
  const int descriptor = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (descriptor < 0) {
    notifier_.failed(node::system_error(errno, "inotify"));
    return;
  }
  inotify_.assign(descriptor);
  wait();
}

void PodFilesWatch::arm(const Arming& arming) {
  if (arming.files == files_) return;
  files_ = arming.files;
  sync(*files_);
}

std::vector<SourceStatus> PodFilesWatch::status() const {
  auto status = notifier_.status("files", "armed");
  status.detail = fmt::format("{} directories of {} pods", owners_.size(), files_ ? files_->size() : 0);
  return {status};
}

void PodFilesWatch::sync(const std::vector<PodFiles>& pods) {
  std::set<std::string> listed;
  for (const auto& pod : pods) listed.insert(pod.uid);
  for (auto entry = owners_.begin(); entry != owners_.end();) {
    if (listed.contains(entry->second.uid)) {
      ++entry;
      continue;
    }
    inotify_rm_watch(inotify_.native_handle(), entry->first);
    entry = owners_.erase(entry);
  }
  std::erase_if(incomplete_, [&](const std::string& uid) { return !listed.contains(uid); });
  for (const auto& pod : pods) {
    bool complete = true;
    for (const auto& directory : pod.directories) complete = watch_tree(pod.uid, directory) && complete;
    if (complete)
      incomplete_.erase(pod.uid);
    else
      incomplete_.insert(pod.uid);
  }
  for (const auto& uid : incomplete_) on_change_(uid);
}

/// A directory that is watched already keeps its descriptor. False where one could not be watched. Without recursion:
/// pods decide how deep their trees are.
bool PodFilesWatch::watch_tree(const std::string& uid, const std::filesystem::path& root) {
  if (!inotify_.is_open()) return false;
  bool complete = true;
  std::vector<std::filesystem::path> pending{root};
  while (!pending.empty()) {
    const auto directory = std::move(pending.back());
    pending.pop_back();
    const int descriptor = inotify_add_watch(inotify_.native_handle(), directory.c_str(), changes);
    if (descriptor < 0) {
      complete = complete && (errno == ENOENT || errno == ENOTDIR);
      if (errno == ENOSPC || errno == ENOMEM) return false;
      continue;
    }
    owners_.insert_or_assign(descriptor, Watched{uid, directory});
    std::error_code gone;
    for (std::filesystem::directory_iterator entry{directory, gone}; !gone && entry != end(entry);
         entry.increment(gone)) {
      std::error_code ignored;
      if (entry->symlink_status(ignored).type() == std::filesystem::file_type::directory)
        pending.push_back(entry->path());
    }
  }
  return complete;
}

void PodFilesWatch::wait() {
  inotify_.async_read_some(asio::buffer(buffer_), [this](boost::system::error_code error, std::size_t size) {
    if (error) return;  // closed: `this` may be gone
    read_events(size);
    // A pod that writes without a pause must not keep the reactor busy: meanwhile the kernel gathers its events.
    pause_.expires_after(std::chrono::milliseconds(100));
    pause_.async_wait([this](boost::system::error_code cancelled) {
      if (!cancelled) wait();
    });
  });
}

void PodFilesWatch::read_events(std::size_t size) {
  std::set<std::string> changed;
  for (std::size_t offset = 0; offset + sizeof(inotify_event) <= size;) {
    inotify_event event{};
    std::memcpy(&event, buffer_.data() + offset, sizeof event);
    const auto* name = buffer_.data() + offset + sizeof event;
    offset += sizeof event + event.len;
    if ((event.mask & IN_Q_OVERFLOW) != 0) return all_changed();
    const auto owner = owners_.find(event.wd);
    if (owner == owners_.end()) continue;
    if ((event.mask & IN_IGNORED) != 0) {
      owners_.erase(owner);
      continue;
    }
    const auto [uid, directory] = owner->second;
    changed.insert(uid);
    const bool new_directory = (event.mask & IN_ISDIR) != 0 && (event.mask & (IN_CREATE | IN_MOVED_TO)) != 0;
    if (new_directory && !watch_tree(uid, directory / name)) incomplete_.insert(uid);
  }
  for (const auto& uid : changed) on_change_(uid);
}

void PodFilesWatch::all_changed() {
  std::set<std::string> uids;
  for (const auto& [descriptor, watched] : owners_) uids.insert(watched.uid);
  for (const auto& uid : uids) on_change_(uid);
}

}  // namespace evictd::wake
