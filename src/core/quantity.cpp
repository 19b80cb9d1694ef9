#include "core/quantity.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <ranges>
#include <utility>

#include "core/number.hpp"
#include "core/printable.hpp"

namespace evictd::core {
namespace {

__extension__ using Nanos = __int128;
using Format = Quantity::Format;

constexpr Nanos nanos_per_unit = 1'000'000'000;
constexpr Nanos max_nanos = Nanos{100'000'000'000'000} * 1'000'000'000'000'000 * nanos_per_unit;  // 10^29 units
constexpr std::int64_t max_int64 = std::numeric_limits<std::int64_t>::max();

/// The text, taken apart: sign, whole digits, fraction digits, suffix.
struct Parts {
  bool negative = false;
  std::string_view whole;
  std::string_view fraction;
  std::string_view suffix;
};

struct Suffix {
  Format format;
  int base;      // 2 or 10
  int exponent;  // of the base
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view take_digits(std::string_view& text) {
  const auto end = std::find_if_not(text.begin(), text.end(), is_digit);
  const auto digits = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(digits.size());
  return digits;
}

std::optional<Parts> split(std::string_view text) {
  Parts parts;
  if (!text.empty() && (text.front() == '+' || text.front() == '-')) {
    parts.negative = text.front() == '-';
    text.remove_prefix(1);
  }
  parts.whole = take_digits(text);
  bool has_digits = !parts.whole.empty();
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    parts.fraction = take_digits(text);
    has_digits = has_digits || !parts.fraction.empty();
  }
  parts.suffix = text;
  if (!has_digits) return std::nullopt;
  return parts;
}

std::optional<Suffix> parse_suffix(std::string_view suffix) {
  static constexpr std::array<std::pair<std::string_view, int>, 10> decimal{
      {{"n", -9}, {"u", -6}, {"m", -3}, {"", 0}, {"k", 3}, {"M", 6}, {"G", 9}, {"T", 12}, {"P", 15}, {"E", 18}}};
  static constexpr std::array<std::pair<std::string_view, int>, 6> binary{
      {{"Ki", 10}, {"Mi", 20}, {"Gi", 30}, {"Ti", 40}, {"Pi", 50}, {"Ei", 60}}};
  for (const auto& [text, exponent] : decimal)
    if (suffix == text) return Suffix{Format::DecimalSI, 10, exponent};
  for (const auto& [text, exponent] : binary)
    if (suffix == text) return Suffix{Format::BinarySI, 2, exponent};

  if (suffix.size() < 2 || (suffix.front() != 'e' && suffix.front() != 'E')) return std::nullopt;
  auto number = suffix.substr(1);
  if (number.front() == '+') {
    number.remove_prefix(1);
    if (number.empty() || !is_digit(number.front())) return std::nullopt;
  }
  const auto exponent = whole_number(number);
  if (!exponent) return std::nullopt;
  // Kubernetes keeps 32 bits of what it reads: 1e4294967296 is 1.
  return Suffix{Format::DecimalExponent, 10, std::clamp(static_cast<std::int32_t>(*exponent), -1000, 1000)};
}

/// digits · 10^scale in nanos, away from zero where finer than a nano; nullopt when beyond ±10^29 units.
std::optional<Nanos> scale_decimal(std::string_view digits, int scale) {
  const auto first = digits.find_first_not_of('0');
  if (first == std::string_view::npos) return Nanos{0};
  digits.remove_prefix(first);

  int drop = -(scale + 9);  // digits finer than a nano
  bool rest = false;
  while (drop > 0 && !digits.empty()) {
    rest = rest || digits.back() != '0';
    digits.remove_suffix(1);
    --drop;
  }
  // Checked before each step: ten times the limit would not fit any more.
  Nanos value = 0;
  for (const char c : digits) {
    if (value > max_nanos / 10) return std::nullopt;
    value = value * 10 + (c - '0');
  }
  for (int i = 0; i < scale + 9; ++i) {
    if (value > max_nanos / 10) return std::nullopt;
    value *= 10;
  }
  if (value > max_nanos) return std::nullopt;
  return rest ? value + 1 : value;
}

/// whole.fraction · 2^exponent in nanos, away from zero, capped at 2^63-1 units as Kubernetes caps binary quantities.
Nanos scale_binary(std::string_view whole, std::string_view fraction, int exponent) {
  constexpr Nanos cap = Nanos{max_int64} * nanos_per_unit;
  Nanos units = 0;
  for (const char c : whole) {
    units = units * 10 + (c - '0');
    if (units > max_int64) return cap;
  }
  if (units > (Nanos{max_int64} >> exponent)) return cap;

  // From the last digit on: each step divides by ten what all later digits came to, so nothing grows beyond 2^94.
  const Nanos suffix_unit = (Nanos{1} << exponent) * nanos_per_unit;
  Nanos fractional = 0;
  bool rest = false;
  for (const char digit : fraction | std::views::reverse) {
    fractional += (digit - '0') * suffix_unit;
    rest = rest || fractional % 10 != 0;
    fractional /= 10;
  }
  return std::min(cap, units * suffix_unit + fractional + (rest ? 1 : 0));
}

/// Whether Kubernetes keeps the text: its quick path for numbers that are canonical or nearly so (kubelet-spec section
/// 15).
bool keeps_text(const Parts& parts, const Suffix& suffix) {
  constexpr std::size_t max_digits = 18;
  auto whole = parts.whole;
  while (whole.size() > 1 && whole.front() == '0') whole.remove_prefix(1);
  const std::string shifted = (whole.empty() ? "0" : std::string(whole)) + std::string(parts.fraction);
  if (shifted.size() > max_digits || shifted.front() == '0') return false;
  if (suffix.base == 2) {
    if (!parts.fraction.empty()) return false;
    const int precision = 15 - static_cast<int>(whole.size()) - suffix.exponent * 3 / 10 - 1;
    std::int64_t value = 0;
    std::from_chars(shifted.data(), shifted.data() + shifted.size(), value);
    return precision >= 0 && value % 8 != 0;
  }
  const int scale = suffix.exponent - static_cast<int>(parts.fraction.size());
  return scale >= -9 && scale % 3 == 0 && !shifted.ends_with("000");
}

std::string digits_of(Nanos value) {
  if (value == 0) return "0";
  const bool negative = value < 0;
  std::string text;
  for (Nanos rest = negative ? -value : value; rest != 0; rest /= 10)
    text += static_cast<char>('0' + static_cast<int>(rest % 10));
  if (negative) text += '-';
  std::reverse(text.begin(), text.end());
  return text;
}

std::string print_decimal(Nanos nanos, Format format) {
  if (nanos == 0) return "0";
  int exponent = -9;
  while (nanos % 1000 == 0) {
    nanos /= 1000;
    exponent += 3;
  }
  std::string text = digits_of(nanos);
  if (exponent == 0) return text;
  static constexpr std::array<const char*, 10> suffixes{"n", "u", "m", "", "k", "M", "G", "T", "P", "E"};
  const int suffix = exponent / 3 + 3;
  if (format != Format::DecimalExponent && suffix < std::ssize(suffixes))
    return text + suffixes[static_cast<std::size_t>(suffix)];
  return text + "e" + std::to_string(exponent);
}

std::string print_binary(Nanos units) {
  static constexpr std::array<const char*, 7> suffixes{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  std::size_t power = 0;
  while (power + 1 < suffixes.size() && units % 1024 == 0) {
    units /= 1024;
    ++power;
  }
  return digits_of(units) + suffixes[power];
}

std::int64_t round_away(Nanos nanos, Nanos unit) {
  const Nanos rounded = nanos >= 0 ? (nanos + unit - 1) / unit : -((-nanos + unit - 1) / unit);
  return static_cast<std::int64_t>(
      std::clamp(rounded, Nanos{std::numeric_limits<std::int64_t>::min()}, Nanos{max_int64}));
}

}  // namespace

Quantity::Quantity(std::int64_t units, Format format) : nanos_{units * nanos_per_unit}, format_{format} {}

Result<Quantity> Quantity::read(std::string_view text, Beyond beyond) {
  const auto quoted = [&] { return '"' + excerpt(text) + '"'; };
  const auto parts = split(text);
  const auto suffix = parts ? parse_suffix(parts->suffix) : std::nullopt;
  if (!suffix) return fail(quoted() + " is not a quantity such as 150Mi, 1.5G or 500");

  Quantity quantity;
  bool is_capped = false;
  quantity.format_ = suffix->format;
  if (suffix->base == 2) {
    quantity.nanos_ = scale_binary(parts->whole, parts->fraction, suffix->exponent);
  } else {
    const auto digits = std::string(parts->whole) + std::string(parts->fraction);
    const auto nanos = scale_decimal(digits, suffix->exponent - static_cast<int>(parts->fraction.size()));
    if (!nanos && beyond == Beyond::refused) return fail(quoted() + " is too large for a quantity (at most 1e29)");
    quantity.nanos_ = nanos.value_or(max_nanos);
    is_capped = !nanos;
  }
  // Too small for binary suffixes to mean anything (apimachinery does the same).
  if (suffix->base == 2 && quantity.nanos_ > 0 && quantity.nanos_ < nanos_per_unit)
    quantity.format_ = Format::DecimalSI;
  if (parts->negative) quantity.nanos_ = -quantity.nanos_;
  if (!is_capped && keeps_text(*parts, *suffix)) quantity.text_ = text;
  return quantity;
}

Result<Quantity> Quantity::parse(std::string_view text) { return read(text, Beyond::refused); }

Result<Quantity> Quantity::parse_capped(std::string_view text) { return read(text, Beyond::capped); }

std::int64_t Quantity::value() const { return round_away(nanos_, nanos_per_unit); }

std::int64_t Quantity::milli_value() const { return round_away(nanos_, nanos_per_unit / 1000); }

std::string Quantity::to_string() const {
  if (!text_.empty()) return text_;
  if (format_ == Format::BinarySI) {
    const bool small = nanos_ > -1024 * nanos_per_unit && nanos_ < 1024 * nanos_per_unit;
    if (!small && nanos_ % nanos_per_unit == 0) return print_binary(nanos_ / nanos_per_unit);
    return print_decimal(nanos_, Format::DecimalSI);
  }
  return print_decimal(nanos_, format_);
}

Quantity& Quantity::operator+=(const Quantity& other) {
  if (nanos_ == 0) format_ = other.format_;  // as Kubernetes: a zero takes the format of what is added to it
  Nanos sum = 0;
  const bool overflow = __builtin_add_overflow(nanos_, other.nanos_, &sum);
  nanos_ = overflow ? (nanos_ > 0 ? max_nanos : -max_nanos) : std::clamp(sum, -max_nanos, max_nanos);
  text_.clear();
  return *this;
}

Quantity& Quantity::operator-=(const Quantity& other) {
  auto negated = other;
  negated.nanos_ = -negated.nanos_;
  return *this += negated;
}

}  // namespace evictd::core
