#pragma once
#include <chrono>
#include <functional>
#include <string>

#include "core/duration.hpp"
#include "os/file_error.hpp"
#include "wake/source.hpp"

namespace evictd::wake {

/// Tells in whose directories files were written, made or removed. On the reactor. There are two: fanotify, one mark
/// for a whole file system (fanotify_trees.hpp), and inotify, one watch for each directory (inotify_trees.hpp). Neither
/// sees what a process writes through a memory mapping.
class TreeWatch {
 public:
  using OnChange = std::function<void(const std::string& uid)>;
  /// Between two looks at the kernel's queue: what changes meanwhile is gathered there.
  static constexpr core::Duration pause = std::chrono::milliseconds(100);

  TreeWatch() = default;
  TreeWatch(const TreeWatch&) = delete;
  TreeWatch& operator=(const TreeWatch&) = delete;
  virtual ~TreeWatch() = default;

  /// Makes these the watched pods, and looks again for directories that did not exist. The error says what is not
  /// watched: its pods count as changed at each call. Events may have been lost: then all pods count as changed, once.
  [[nodiscard]] virtual os::FileResult<void> watch(const WatchedPods& pods) = 0;

  /// "fanotify on 1 file system", "inotify on 12 directories"
  [[nodiscard]] virtual std::string describe() const = 0;
};

}  // namespace evictd::wake
