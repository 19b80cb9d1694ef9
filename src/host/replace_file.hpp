#pragma once
#include <filesystem>
#include <string_view>

#include "core/error.hpp"

namespace evictd::host {

/// Makes the file hold this text, by a rename: whoever reads it sees the old text or the new one, never a part. Makes
/// the directories above it. Mode 0644. Nothing waits for the disk: after a power failure the file may be empty. Error:
/// "FILE: cannot be written: Read-only file system".
[[nodiscard]] Result<void> replace_file(const std::filesystem::path& file, std::string_view text);

}  // namespace evictd::host
