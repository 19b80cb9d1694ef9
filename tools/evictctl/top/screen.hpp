#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "evictctl/paint.hpp"
#include "evictctl/table.hpp"

namespace evictd::ctl {

/// What there is to draw on.
struct Screen {
  std::size_t columns = 80;
  std::size_t rows = 24;
  bool utf8 = true;  ///< otherwise nothing but ASCII may be sent
  Paint paint{};
};

/// One line of the screen, put together from the left; what does not fit is cut off. Texts of others, names and
/// messages, are made printable.
class Row {
 public:
  explicit Row(const Screen& screen) : screen_{screen} {}

  Row& add(std::string_view text, Style style = Style::Plain);
  /// Exactly as wide, cut short by "…" or filled up with blanks; `right`: with these before it.
  Row& cell(std::string_view text, std::size_t width, Style style = Style::Plain, bool right = false);
  /// One for each column, as wide as that is, with a blank before; a column of width 0 is left out.
  Row& cells(const std::vector<Column>& columns, const std::vector<Cell>& cells);
  /// At the right edge, if what is there leaves a blank between.
  Row& right(std::string_view text, Style style = Style::Plain);
  /// One of two, as the terminal has it.
  Row& glyph(std::string_view utf8, std::string_view ascii, Style style = Style::Plain) {
    return add(screen_.utf8 ? utf8 : ascii, style);
  }

  [[nodiscard]] std::size_t room() const { return screen_.columns - used_; }
  [[nodiscard]] std::string text() const { return text_ + screen_.paint(style_, run_); }

 private:
  [[nodiscard]] std::string displayable(std::string_view text) const;

  const Screen& screen_;
  std::string text_;  // but for the last run of one style
  std::string run_;
  Style style_ = Style::Plain;
  std::size_t used_ = 0;
};

}  // namespace evictd::ctl
