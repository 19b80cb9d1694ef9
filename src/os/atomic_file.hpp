#pragma once
#include <sys/types.h>

#include <filesystem>
#include <string_view>

#include "core/error.hpp"

namespace evictd::os {

struct AtomicWrite {
  mode_t mode = 0600;
  /// Whether the content is to be there after the power failed. Without it nothing waits for the disk: for files that
  /// do not outlive a boot.
  bool durable = true;
};

/// Replaces the file's content as a whole: a reader sees the old or the new one. The directory is made where it
/// is missing, with its parents.
///
/// It writes "PATH.new" beside it. A durable write waits for the disk: not for the reactor's thread. Error: "PATH:
/// cannot be written: No space left on device"; the old content is still there. "PATH: was
/// written, but may be lost with the power: …": the new one is.
[[nodiscard]] Result<void> write_atomically(const std::filesystem::path& path, std::string_view content,
                                            AtomicWrite how = {});

}  // namespace evictd::os
