#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "config/agent_configuration.hpp"
#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/filesystem_layout.hpp"
#include "core/observation.hpp"
#include "core/signal.hpp"
#include "node/file_error.hpp"
#include "node/filesystem.hpp"

namespace evictd::node {

/// The disk signals of the node.
///
/// nodefs is the file system of `node.kubeletRoot`, or of its nearest parent where that directory does not exist.
/// imagefs is where the runtime keeps images, known once it said so; until then, and where both are the same, it has
/// the numbers of nodefs. containerfs, the file system of writable layers, is imagefs: containerd keeps both together.
class NodeDisk {
 public:
  explicit NodeDisk(const config::NodeSettings& settings);

  /// The mount point or directory that the runtime names (CRI: ImageFsInfo); absent: not known.
  void set_imagefs(std::optional<std::filesystem::path> path) { imagefs_ = std::move(path); }

  /// Replaces the disk signals among the observations by what the file systems say now, the rest stays: 1.4 µs for
  /// each file system. What cannot be read has no observation, and an error that names what it stands for.
  [[nodiscard]] std::vector<Error> observe(core::Instant now, core::Observations& observations);

  /// What a disk signal's observation would say now: no allocation, and nothing stays open, which would hold the file
  /// system busy. Absent where there would be no observation.
  [[nodiscard]] std::optional<std::int64_t> available(core::Signal signal) const;

  /// As the last observe() that could read both file systems saw it: dedicated where the devices differ. Two
  /// subvolumes of one btrfs are two devices here, although they share their space.
  [[nodiscard]] core::FilesystemLayout layout() const { return layout_; }

 private:
  [[nodiscard]] FileResult<FilesystemReading> read_nodefs() const;

  std::filesystem::path nodefs_;
  std::optional<std::filesystem::path> imagefs_;
  core::FilesystemLayout layout_;
};

}  // namespace evictd::node
