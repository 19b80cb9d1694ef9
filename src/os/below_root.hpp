#pragma once
#include <filesystem>
#include <string_view>

namespace evictd::os {

/// An absolute path as one of the tree in `root`, which is "/" but in tests.
[[nodiscard]] inline std::filesystem::path below_root(const std::filesystem::path& root, std::string_view absolute) {
  return root / std::filesystem::path(absolute).relative_path();
}

}  // namespace evictd::os
