#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace package {

/// The Debian package of this checkout, which tools/deploy/deb makes once in a run. The environment's EVICTD_DEB points
/// to another one.
[[nodiscard]] const std::filesystem::path& deb();

/// A field of its control file: "Version".
[[nodiscard]] std::string field(const std::filesystem::path& deb, const std::string& name);

/// All that it brings but directories, "/usr/sbin/evictd", sorted.
[[nodiscard]] std::vector<std::string> files_in(const std::filesystem::path& deb);

/// Writes the same package by another version, as an upgrade is one.
void repack(const std::filesystem::path& deb, const std::string& version, const std::filesystem::path& result);

/// At the end of a run.
void forget_deb();

/// What meson.build says.
[[nodiscard]] std::string project_version();

[[nodiscard]] std::vector<std::string> lines_of(const std::string& text);

}  // namespace package
