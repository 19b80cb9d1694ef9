#pragma once
#include <filesystem>
#include <string_view>

#include "core/error.hpp"

namespace evictd::host {

/// Replaces the file's content as a whole: whoever reads it, even after the power failed, sees the old or the new one.
/// The directory is made where it is missing, with its parents; the file is readable by its owner alone.
///
/// It writes "PATH.new" beside it and waits for the disk: not for the reactor's thread. Error: "PATH: cannot be
/// written: No space left on device"; the old content is still there.
[[nodiscard]] Result<void> write_atomically(const std::filesystem::path& path, std::string_view content);

}  // namespace evictd::host
