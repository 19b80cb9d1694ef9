#pragma once
#include <filesystem>

#include "bare_root.hpp"

namespace package {

/// Checks that on a bare root of the release the package is installed, upgraded, removed and purged, and leaves
/// nothing; and what it brings in between.
void check_life_of(const std::filesystem::path& deb, const Release& release);

}  // namespace package
