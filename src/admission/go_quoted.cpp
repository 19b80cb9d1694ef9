#include "admission/go_quoted.hpp"

namespace evictd::admission {
namespace {

/// The letter after the backslash; 0 where there is none of its own.
char short_escape(char c) {
  switch (c) {
    case '\a': return 'a';
    case '\b': return 'b';
    case '\f': return 'f';
    case '\n': return 'n';
    case '\r': return 'r';
    case '\t': return 't';
    case '\v': return 'v';
    case '"':
    case '\\': return c;
    default: return 0;
  }
}

void append_escaped(std::string& result, char c) {
  constexpr std::string_view digits = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  if (const auto letter = short_escape(c); letter != 0) {
    result.append({'\\', letter});
  } else if (byte < 0x20 || byte == 0x7f) {
    result.append({'\\', 'x', digits[byte >> 4], digits[byte & 0xf]});
  } else {
    result.push_back(c);
  }
}

}  // namespace

std::string go_quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) append_escaped(result, c);
  return result + '"';
}

}  // namespace evictd::admission
