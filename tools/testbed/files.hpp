#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace testbed {

/// The whole text of a file; also of one in /proc or a cgroup, whose size is unknown beforehand.
[[nodiscard]] std::string read_file(const std::filesystem::path& file);
/// The same for what may be gone at any moment, such as a process.
[[nodiscard]] std::optional<std::string> try_read_file(const std::filesystem::path& file);
/// A file that holds one number, as most of a cgroup do. "max" is the largest number there is.
[[nodiscard]] std::int64_t read_number(const std::filesystem::path& file);

/// In one write, into the file that is there: what the control files of a cgroup want.
void write_file(const std::filesystem::path& file, std::string_view text);
/// By a rename: a reader sees the old text or the new one, never a part.
void replace_file(const std::filesystem::path& file, std::string_view text);

/// A directory, with a file in it, in which only a user may write who is not root: without CAP_DAC_OVERRIDE root may
/// not either. It and those above it are made.
void make_users_directory(const std::filesystem::path& directory);

/// Whether somebody listens on a socket, of which the file alone does not tell: one that was killed leaves it behind.
[[nodiscard]] bool accepts(const std::filesystem::path& socket);

/// Whether `path` is `directory` or lies below it, by the names alone.
[[nodiscard]] bool is_below(const std::filesystem::path& path, const std::filesystem::path& directory);

}  // namespace testbed
