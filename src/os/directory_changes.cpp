#include "os/directory_changes.hpp"

#include <fmt/format.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace evictd::os {

DirectoryChanges::DirectoryChanges() : queue_{::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)} {}

bool DirectoryChanges::watch(const Directory& directory) {
  constexpr std::uint32_t what = IN_CREATE | IN_DELETE | IN_MOVE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
  const auto path = fmt::format("/proc/self/fd/{}", directory.descriptor());
  const int watch = queue_ ? ::inotify_add_watch(queue_.get(), path.c_str(), what) : -1;
  if (watch >= 0) rewatched_.insert(watch);
  return watch >= 0;
}

void DirectoryChanges::keep_rewatched() {
  for (const int watch : watches_)
    if (!rewatched_.contains(watch)) ::inotify_rm_watch(queue_.get(), watch);
  watches_ = std::exchange(rewatched_, {});
}

/// The kernel holds fs.inotify.max_queued_events, 16,384 of them, at most: then the last one says that some are lost.
bool DirectoryChanges::any() {
  alignas(inotify_event) std::array<char, 4096> events;
  bool changed = false;
  ssize_t size = 0;
  while ((size = ::read(queue_.get(), events.data(), events.size())) > 0) {
    for (ssize_t at = 0; at < size;) {
      inotify_event event{};
      std::memcpy(&event, events.data() + at, sizeof event);
      // The end of a watch comes after what ended it, if that was not keep_rewatched().
      changed = changed || (event.mask & IN_IGNORED) == 0;
      at += static_cast<ssize_t>(sizeof event + event.len);
    }
  }
  return changed || errno != EAGAIN;
}

}  // namespace evictd::os
