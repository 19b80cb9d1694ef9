#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "core/threshold_advice.hpp"

namespace evictd::node {

/// The watermarks of all zones together, in bytes, from the text of /proc/zoneinfo. Absent where it has none.
[[nodiscard]] std::optional<core::ZoneWatermarks> parse_zoneinfo(std::string_view text, std::int64_t page_size);

/// The same of a running machine; it blocks for some 50 µs. Absent where the file cannot be read.
[[nodiscard]] std::optional<core::ZoneWatermarks> read_zone_watermarks(const std::filesystem::path& proc);

}  // namespace evictd::node
