#pragma once
#include <filesystem>
#include <string>

namespace evictd::os {

inline constexpr auto boot_id_file = "/proc/sys/kernel/random/boot_id";

/// What tells this boot from others (random(4)): a UUID in 36 characters; empty where it cannot be read.
[[nodiscard]] std::string read_boot_id(const std::filesystem::path& file = boot_id_file);

}  // namespace evictd::os
