#pragma once
#include <set>

#include "os/directory.hpp"
#include "os/file_descriptor.hpp"

namespace evictd::os {

/// Whether entries came to directories or went from them since that was asked last, by one system call however many
/// they have. (inotify(7): the kernel queues an event in the call that makes or removes an entry) Waits for nothing;
/// one thread.
class DirectoryChanges {
 public:
  DirectoryChanges();

  /// Watches it from now on, also where it is watched already. That it is removed itself is not told of every file
  /// system (cgroupfs: seen on Linux 6.18). False: it cannot be watched, for want of an inotify instance or watch, say.
  [[nodiscard]] bool watch(const Directory& directory);
  /// Takes the watches back of those that were not named to watch() since the last call: a file system that does not
  /// tell of the end of a directory keeps its watch, and what stands for it in the kernel.
  void keep_rewatched();
  /// Since the last call. Of what cannot be told it says that there was one.
  [[nodiscard]] bool any();

 private:
  FileDescriptor queue_;
  std::set<int> watches_;    // as of the last keep_rewatched()
  std::set<int> rewatched_;  // since then
};

}  // namespace evictd::os
