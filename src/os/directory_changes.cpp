#include "os/directory_changes.hpp"

#include <fmt/format.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace evictd::os {

DirectoryChanges::DirectoryChanges() : queue_{::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)} {}

bool DirectoryChanges::watch(const Directory& directory) {
  constexpr std::uint32_t what = IN_CREATE | IN_DELETE | IN_MOVE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
  const auto path = fmt::format("/proc/self/fd/{}", directory.descriptor());
  return queue_ && ::inotify_add_watch(queue_.get(), path.c_str(), what) >= 0;
}

/// The kernel holds fs.inotify.max_queued_events, 16,384 of them, at most: then the last one says that some are lost.
bool DirectoryChanges::any() {
  alignas(inotify_event) std::array<char, 4096> events;
  bool changed = false;
  while (::read(queue_.get(), events.data(), events.size()) > 0) changed = true;
  return changed || errno != EAGAIN;
}

}  // namespace evictd::os
