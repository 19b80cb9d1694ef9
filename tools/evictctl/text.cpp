#include "evictctl/text.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <ctime>
#include <utility>

#include "core/signal.hpp"

namespace evictd::ctl {
namespace {

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

/// "1.46", "54.1", "733": of a value that is about 1 or more, without zeros at the end of a fraction.
std::string three_digits(double value) {
  return std::abs(value) < 999.5 ? fmt::format("{:.3g}", value) : fmt::format("{:.0f}", value);
}

/// With three digits, and the suffix of as many powers of the base as it has. What would be printed as the base itself
/// is the next unit's.
std::string scaled(double value, double base, const std::vector<const char*>& suffixes) {
  std::size_t unit = 0;
  for (; std::abs(value) >= base - 0.5 && unit + 1 < suffixes.size(); ++unit) value /= base;
  return (unit == 0 ? fmt::format("{:.0f}", value) : three_digits(value)) + suffixes[unit];
}

std::tm to_local(TimePoint time) {
  return fmt::localtime(std::chrono::system_clock::to_time_t(std::chrono::floor<std::chrono::seconds>(time)));
}

}  // namespace

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

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

std::string bytes_text(std::int64_t bytes) {
  return scaled(static_cast<double>(bytes), 1024, {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"});
}

std::string count_text(double count) { return scaled(count, 1000, {"", "k", "M", "G", "T"}); }

bool is_counted(std::string_view unit) { return unit != core::bytes_unit; }

std::string amount_text(std::string_view unit, std::int64_t amount) {
  return is_counted(unit) ? fmt::format("{}", amount) : bytes_text(amount);
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

std::chrono::nanoseconds to_nanoseconds(const google::protobuf::Duration& duration) {
  return std::chrono::seconds(duration.seconds()) + std::chrono::nanoseconds(duration.nanos());
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
