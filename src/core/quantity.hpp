#pragma once
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace evictd::core {

/// An amount as Kubernetes writes it: "150Mi", "1.5G", "100m", "1e3".
///
/// Parsing, rounding and canonical printing follow apimachinery's resource.Quantity: nothing finer than a billionth
/// (finer is rounded away from zero), binary-suffixed amounts cap at 2^63-1, exponents have 32 bits, no blanks, no "K".
/// Amounts beyond ±10^29 are an error, unless they are to be capped.
class Quantity {
 public:
  enum class Format { DecimalSI, BinarySI, DecimalExponent };

  constexpr Quantity() = default;

  [[nodiscard]] static Result<Quantity> parse(std::string_view text);
  /// The same for an amount that Kubernetes has taken, which takes any: what is beyond ±10^29 counts as that.
  [[nodiscard]] static Result<Quantity> parse_capped(std::string_view text);
  /// A whole number of bytes, printed with binary suffixes ("150Mi").
  [[nodiscard]] static Quantity bytes(std::int64_t value) { return {value, Format::BinarySI}; }
  /// A whole number of things, printed with decimal suffixes ("5k").
  [[nodiscard]] static Quantity count(std::int64_t value) { return {value, Format::DecimalSI}; }

  /// In whole units, rounded away from zero; values beyond int64 saturate.
  [[nodiscard]] std::int64_t value() const;
  /// In thousandths of a unit (milli-CPU), rounded away from zero; values beyond int64 saturate.
  [[nodiscard]] std::int64_t milli_value() const;
  [[nodiscard]] bool is_zero() const { return nanos_ == 0; }
  [[nodiscard]] bool is_negative() const { return nanos_ < 0; }

  /// The canonical text. A parsed quantity keeps the text it was read from where Kubernetes keeps it ("1E6",
  /// "100.035k"); any sum drops it.
  [[nodiscard]] std::string to_string() const;

  Quantity& operator+=(const Quantity& other);
  Quantity& operator-=(const Quantity& other);
  friend Quantity operator+(Quantity a, const Quantity& b) { return a += b; }
  friend Quantity operator-(Quantity a, const Quantity& b) { return a -= b; }

  /// By amount only: 1Gi == 1024Mi.
  friend std::strong_ordering operator<=>(const Quantity& a, const Quantity& b) { return a.nanos_ <=> b.nanos_; }
  friend bool operator==(const Quantity& a, const Quantity& b) { return a.nanos_ == b.nanos_; }

 private:
  __extension__ using Nanos = __int128;  // 10^-9 of a unit: every legal amount is exact
  Quantity(std::int64_t units, Format format);

  enum class Beyond : bool { refused, capped };  // what is beyond the largest
  static Result<Quantity> read(std::string_view text, Beyond beyond);

  Nanos nanos_ = 0;
  Format format_ = Format::DecimalSI;
  std::string text_;  // empty: print canonically
};

}  // namespace evictd::core
