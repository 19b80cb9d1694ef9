#include "evictctl/top/screen.hpp"

#include "evictctl/text.hpp"

namespace evictd::ctl {

/// Where there is no UTF-8 a character beyond ASCII becomes "?", the mark of what was cut off "~".
std::string Row::displayable(std::string_view text) const {
  if (screen_.utf8) return std::string(text);
  std::string ascii;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x80)
      ascii += text[i];
    else if (byte >= 0xc0)
      ascii += text.substr(i).starts_with("…") ? '~' : '?';
  }
  return ascii;
}

Row& Row::add(std::string_view text, Style style) {
  const auto shown = displayable(shortened(printable(text), room()));
  used_ += columns(shown);
  if (style != style_) {
    text_ += screen_.paint(style_, run_);
    run_.clear();
    style_ = style;
  }
  run_ += shown;
  return *this;
}

Row& Row::cell(std::string_view text, std::size_t width, Style style, bool right) {
  const auto shown = shortened(printable(text), width);
  const std::string blanks(width - columns(shown), ' ');
  return right ? add(blanks).add(shown, style) : add(shown, style).add(blanks);
}

Row& Row::cells(const std::vector<Column>& columns, const std::vector<Cell>& cells) {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].width == 0) continue;
    if (used_ > 0) add(" ");
    cell(cells[i].text, columns[i].width, cells[i].style, columns[i].right);
  }
  return *this;
}

Row& Row::right(std::string_view text, Style style) {
  const auto width = columns(printable(text));
  if (room() < width + 1) return *this;
  add(std::string(room() - width, ' '));
  return add(text, style);
}

}  // namespace evictd::ctl
