#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace evictd::ctl {

/// What a text means to the reader, as far as colour can say it. What it says is in the words as well.
enum class Style : std::uint8_t {
  Plain,
  Strong,   ///< what to look at first
  Faint,    ///< what is there for completeness
  Bad,      ///< pressure, a threshold that is met, a failure
  Warning,  ///< what may become one
  Good,
  Title,
  Chosen,  ///< where the reader is
};

/// Whether the standard output is a terminal that obeys ANSI sequences: TERM says something else than "dumb".
[[nodiscard]] bool obeys_sequences();

/// Puts ANSI sequences around texts, or does not.
class Paint {
 public:
  explicit Paint(bool on = false) : on_{on} {}

  /// As it is for Style::Plain. The text must be printable already.
  [[nodiscard]] std::string operator()(Style style, std::string_view text) const;

 private:
  bool on_;
};

}  // namespace evictd::ctl
