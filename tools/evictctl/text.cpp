#include "evictctl/text.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <ctime>
#include <optional>
#include <utility>

namespace evictd::ctl {
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

std::string escaped(char32_t code) {
  switch (code) {
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    default:
      return code < 0x80 ? fmt::format("\\x{:02x}", static_cast<unsigned>(code))
                         : fmt::format("\\u{:04x}", static_cast<unsigned>(code));
  }
}

bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80; }

/// How many bytes the first `width` columns take.
std::size_t bytes_of(std::string_view text, std::size_t width) {
  std::size_t end = 0;
  while (end < text.size() && width > 0) {
    do ++end;
    while (end < text.size() && continues_character(text[end]));
    --width;
  }
  return end;
}

std::tm to_local(TimePoint time) {
  return fmt::localtime(std::chrono::system_clock::to_time_t(std::chrono::floor<std::chrono::seconds>(time)));
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const auto character = first_character(text);
    if (!character) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
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

std::size_t columns(std::string_view text) {
  std::size_t count = 0;
  for (const char byte : text) count += continues_character(byte) ? 0 : 1;
  return count;
}

std::string shortened(std::string_view text, std::size_t width) {
  if (columns(text) <= width) return std::string(text);
  return width == 0 ? "" : std::string(text.substr(0, bytes_of(text, width - 1))) + "…";
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  while (columns(text) > width) {
    const std::size_t full = bytes_of(text, width);
    const std::size_t blank = text.rfind(' ', full);  // a blank right behind a full line is as good as one in it
    const bool breakable = blank != std::string_view::npos && blank > 0;
    lines.emplace_back(text.substr(0, breakable ? blank : full));
    text.remove_prefix(breakable ? blank + 1 : full);
  }
  if (!text.empty() || lines.empty()) lines.emplace_back(text);
  return lines;
}

std::string three_digits(double value) {
  const int decimals = std::abs(value) < 9.995 ? 2 : std::abs(value) < 99.95 ? 1 : 0;
  auto digits = fmt::format("{:.{}f}", value, decimals);
  if (decimals > 0) {
    digits.erase(digits.find_last_not_of('0') + 1);
    if (digits.back() == '.') digits.pop_back();
  }
  return digits;
}

std::string bytes_text(std::int64_t bytes) {
  constexpr std::array suffixes{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  // 1023.95 would be printed as 1024.0: it is the next unit's.
  for (; std::abs(value) >= 1023.5 && unit + 1 < suffixes.size(); ++unit) value /= 1024;
  if (unit == 0) return fmt::format("{}", bytes);
  return three_digits(value) + suffixes[unit];
}

bool is_counted(std::string_view signal) { return signal.ends_with("inodesFree") || signal == "pid.available"; }

std::string amount_text(std::string_view signal, std::int64_t amount) {
  return is_counted(signal) ? fmt::format("{}", amount) : bytes_text(amount);
}

std::string duration_text(std::chrono::nanoseconds duration) {
  using namespace std::chrono_literals;
  if (duration < 1ms) return "0s";
  if (duration < 1s) return fmt::format("{}ms", duration / 1ms);
  constexpr std::array<std::pair<std::chrono::seconds, char>, 4> units{{{24h, 'd'}, {1h, 'h'}, {1min, 'm'}, {1s, 's'}}};
  std::size_t leading = 0;
  while (duration < units[leading].first) ++leading;
  auto text = fmt::format("{}{}", duration / units[leading].first, units[leading].second);
  if (leading + 1 == units.size()) return text;
  const auto next = units[leading + 1];
  if (const auto count = duration % units[leading].first / next.first; count > 0)
    text += fmt::format("{}{}", count, next.second);
  return text;
}

std::string latency_text(std::chrono::microseconds time) {
  const double microseconds = static_cast<double>(time.count());
  if (microseconds < 999.5) return fmt::format("{}us", time.count());
  if (microseconds < 999'500) return three_digits(microseconds / 1e3) + "ms";
  return three_digits(microseconds / 1e6) + "s";
}

TimePoint to_time_point(const google::protobuf::Timestamp& time) {
  return TimePoint(std::chrono::duration_cast<TimePoint::duration>(std::chrono::seconds(time.seconds()) +
                                                                   std::chrono::nanoseconds(time.nanos())));
}

std::string day_text(TimePoint time) { return fmt::format("{:%Y-%m-%d}", to_local(time)); }

std::string time_text(TimePoint time) {
  const auto second = std::chrono::floor<std::chrono::seconds>(time);
  return fmt::format("{:%H:%M:%S}.{:03}", to_local(time),
                     std::chrono::floor<std::chrono::milliseconds>(time - second).count());
}

}  // namespace evictd::ctl
