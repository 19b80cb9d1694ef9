#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace evictd::ctl {

enum class Key : std::uint8_t { Quit, Up, Down, Help, Redraw, Suspend, Other };

/// What was pressed. The bytes are those of one read: an escape sequence comes as a whole.
[[nodiscard]] std::vector<Key> read_keys(std::string_view bytes);

}  // namespace evictd::ctl
