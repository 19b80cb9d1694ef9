#include "core/duration.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "core/printable.hpp"

namespace evictd::core {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t nanoseconds;
};

// Longer names first, so that "ms" is not taken for "m".
constexpr std::array units{
    Unit{"ns", 1},         Unit{"us", 1'000},        Unit{"µs", 1'000},         Unit{"μs", 1'000},
    Unit{"ms", 1'000'000}, Unit{"s", 1'000'000'000}, Unit{"m", 60'000'000'000}, Unit{"h", 3'600'000'000'000}};

__extension__ using Wide = __int128;
constexpr Wide limit = Wide{1} << 63;  // what a negative duration may reach; a positive one must stay below

/// Removes the digits at the front. What is beyond the limit stays beyond it, no matter how far.
Wide take_number(std::string_view& text) {
  Wide value = 0;
  for (; !text.empty() && text.front() >= '0' && text.front() <= '9'; text.remove_prefix(1))
    if (value <= limit) value = value * 10 + (text.front() - '0');
  return value;
}

/// One "1.5h": removes it from the text; nullopt when malformed.
std::optional<Wide> take_term(std::string_view& text) {
  constexpr std::size_t most_digits = 15;  // finer ones are below a nanosecond even of an hour
  const auto before = text.size();
  const Wide whole = take_number(text);
  bool digits = text.size() < before;
  Wide fraction = 0;
  Wide scale = 1;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    const auto end = std::min(text.find_first_not_of("0123456789"), text.size());
    auto significant = text.substr(0, std::min(end, most_digits));
    for (std::size_t i = 0; i < significant.size(); ++i) scale *= 10;
    fraction = take_number(significant);
    digits = digits || end > 0;
    text.remove_prefix(end);
  }
  const auto unit = std::ranges::find_if(units, [&](const Unit& u) { return text.starts_with(u.name); });
  if (!digits || unit == units.end()) return std::nullopt;
  text.remove_prefix(unit->name.size());
  return whole * unit->nanoseconds + fraction * unit->nanoseconds / scale;
}

std::string with_fraction(std::int64_t whole, std::int64_t fraction, int digits) {
  std::string text = std::to_string(whole);
  if (fraction == 0) return text;
  std::string tail = std::to_string(fraction);
  tail.insert(0, static_cast<std::size_t>(digits) - tail.size(), '0');
  tail.erase(tail.find_last_not_of('0') + 1);
  return text + "." + tail;
}

}  // namespace

Result<Duration> parse_duration(std::string_view text) {
  const auto quoted = [&] { return '"' + excerpt(text) + '"'; };
  auto rest = text;
  bool negative = false;
  if (!rest.empty() && (rest.front() == '+' || rest.front() == '-')) {
    negative = rest.front() == '-';
    rest.remove_prefix(1);
  }
  if (rest == "0") return Duration::zero();
  if (rest.empty()) return fail(quoted() + " is not a duration such as 90s or 1m30s");
  Wide total = 0;
  while (!rest.empty()) {
    const auto term = take_term(rest);
    if (!term) {
      const bool bare = text.find_first_not_of("+-.0123456789") == std::string_view::npos;
      return fail(quoted() + (bare ? " lacks a unit: write 90s or 1m30s" : " is not a duration such as 90s or 1m30s"));
    }
    total += *term;
    if (total > (negative ? limit : limit - 1))
      return fail(quoted() + " is longer than a duration can be (about 292 years)");
  }
  return Duration{static_cast<std::int64_t>(negative ? -total : total)};
}

std::string to_string(Duration duration) {
  if (duration == Duration::zero()) return "0s";
  const bool negative = duration < Duration::zero();
  // Unsigned, since the magnitude of the most negative duration does not fit the signed type.
  const auto raw = static_cast<std::uint64_t>(duration.count());
  const auto nanoseconds = negative ? ~raw + 1 : raw;
  const std::string sign = negative ? "-" : "";
  const auto text = [&](std::uint64_t unit, int digits, const char* name) {
    return sign +
           with_fraction(static_cast<std::int64_t>(nanoseconds / unit), static_cast<std::int64_t>(nanoseconds % unit),
                         digits) +
           name;
  };
  if (nanoseconds < 1'000) return text(1, 0, "ns");
  if (nanoseconds < 1'000'000) return text(1'000, 3, "µs");
  if (nanoseconds < 1'000'000'000) return text(1'000'000, 6, "ms");

  const auto seconds = nanoseconds / 1'000'000'000;
  std::string result = sign;
  if (seconds >= 3600) result += std::to_string(seconds / 3600) + "h";
  if (seconds >= 60) result += std::to_string(seconds / 60 % 60) + "m";
  return result +
         with_fraction(static_cast<std::int64_t>(seconds % 60), static_cast<std::int64_t>(nanoseconds % 1'000'000'000),
                       9) +
         "s";
}

}  // namespace evictd::core
