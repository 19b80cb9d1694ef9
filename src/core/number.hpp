#pragma once
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

// Decimal numbers in text, in digits alone: no blanks and no "+". What is beyond the type's range is no number.
namespace evictd::core {

/// The number that is all of the text; a "-" where the type has a sign.
template <class Integer = std::int64_t>
[[nodiscard]] std::optional<Integer> whole_number(std::string_view text) {
  Integer value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The number that the text begins with, which is taken off it; nothing is where it is less than 0.
template <class Integer = std::int64_t>
[[nodiscard]] std::optional<Integer> take_count(std::string_view& text) {
  Integer value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

/// Whether it is a port of TCP: 1 to 65535.
[[nodiscard]] inline bool is_port(std::string_view text) { return whole_number<std::uint16_t>(text).value_or(0) != 0; }

}  // namespace evictd::core
