#pragma once
#include <filesystem>
#include <vector>

namespace testbed {

/// Where something is mounted at `directory` or below, the latest mount first.
[[nodiscard]] std::vector<std::filesystem::path> mounts_below(const std::filesystem::path& directory);

/// Unmounts all of them, lazily: a process that still holds one open keeps nobody waiting.
void unmount_below(const std::filesystem::path& directory);

}  // namespace testbed
