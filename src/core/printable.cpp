#include "core/printable.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace evictd::core {
namespace {

struct Character {
  char32_t code;
  std::size_t length;  // in bytes
};

/// The character that begins the text, unless the bytes there are no UTF-8 (overlong forms and surrogates included).
std::optional<Character> first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return Character{byte(0), 1};
  const std::size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < length) return std::nullopt;
  char32_t code = byte(0) & (0x7fU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return std::nullopt;
    code = (code << 6U) | (byte(i) & 0x3fU);
  }
  constexpr std::array<char32_t, 5> smallest{0, 0, 0x80, 0x800, 0x10000};
  if (code < smallest[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return std::nullopt;
  return Character{code, length};
}

bool turns_direction(char32_t code) {
  return code == 0x61c || code == 0x200e || code == 0x200f || (code >= 0x202a && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

bool breaks_line(char32_t code) { return code == 0x2028 || code == 0x2029; }

std::string hexadecimal(char32_t number, unsigned digits) {
  std::string text;
  while (digits-- > 0) text += "0123456789abcdef"[(number >> (4 * digits)) & 0xfU];
  return text;
}

std::string escaped(char32_t code) {
  switch (code) {
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    default: return code < 0x80 ? "\\x" + hexadecimal(code, 2) : "\\u" + hexadecimal(code, 4);
  }
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const auto character = first_character(text);
    if (!character) {
      result += "\\x" + hexadecimal(static_cast<unsigned char>(text[0]), 2);
      text.remove_prefix(1);
      continue;
    }
    const auto [code, length] = *character;
    const bool control = code < 0x20 || (code >= 0x7f && code < 0xa0);
    if (control || turns_direction(code) || breaks_line(code))
      result += escaped(code);
    else
      result += text.substr(0, length);
    text.remove_prefix(length);
  }
  return result;
}

std::size_t valid_utf8(std::string_view text) {
  auto rest = text;
  while (!rest.empty()) {
    const auto character = first_character(rest);
    if (!character) break;
    rest.remove_prefix(character->length);
  }
  return text.size() - rest.size();
}

std::string printable_ascii(std::string_view text, std::size_t most) {
  std::string result(text.substr(0, most));
  std::ranges::replace_if(result, [](char c) { return c < ' ' || c > '~'; }, '?');
  return result;
}

std::string_view beginning(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0U) == 0x80) --most;
  return text.substr(0, most);
}

std::string excerpt(std::string_view text, std::size_t most) {
  auto line = printable(beginning(text, most));
  if (text.size() <= most && line.size() <= most) return line;
  return std::string(beginning(line, most)) + "…";
}

}  // namespace evictd::core
