#include "evictctl/table.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "evictctl/text.hpp"

namespace evictd::ctl {
namespace {

constexpr std::size_t gap = 2;
constexpr std::size_t widest_cell = 32;
constexpr std::size_t narrowest_last = 16;
constexpr std::size_t narrowest_text = 10;   // of a name: what distinguishes it is mostly in there
constexpr std::size_t narrowest_number = 4;  // a number that is cut short is worth nothing: they go last

std::string padded(const std::string& cell, const Column& column, Style style, const Paint& paint) {
  const std::size_t used = columns(cell);
  const std::string blanks(column.width > used ? column.width - used : 0, ' ');
  return column.right ? blanks + paint(style, cell) : paint(style, cell) + blanks;
}

std::string without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::size_t total(const std::vector<Column>& columns) {
  std::size_t sum = gap * (columns.size() - 1);
  for (const auto& column : columns) sum += column.width;
  return sum;
}

/// The widest of those that may still become narrower.
std::optional<std::size_t> widest(const std::vector<Column>& columns, bool numbers, std::size_t narrowest) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i + 1 < columns.size(); ++i) {
    if (columns[i].right != numbers || columns[i].width <= narrowest) continue;
    if (!found || columns[i].width > columns[*found].width) found = i;
  }
  return found;
}

/// The last column gives way first, but for a rest of it; then names; then it all; numbers come last.
void fit(std::vector<Column>& columns, std::size_t width) {
  const auto excess = [&] { return total(columns) > width ? total(columns) - width : 0; };
  auto& last = columns.back().width;
  const auto narrow_last = [&](std::size_t narrowest) {
    last -= std::min(excess(), last > narrowest ? last - narrowest : 0);
  };
  narrow_last(narrowest_last);
  while (excess() > 0) {
    auto column = widest(columns, false, narrowest_text);
    if (!column) break;
    --columns[*column].width;
  }
  narrow_last(narrowest_number);
  for (const bool numbers : {false, true})
    while (excess() > 0) {
      auto column = widest(columns, numbers, numbers ? 1 : narrowest_number);
      if (!column) break;
      --columns[*column].width;
    }
}

void print_cells(std::ostream& out, const std::vector<Column>& columns, const std::vector<Cell>& cells,
                 std::size_t last_width, const Paint& paint) {
  std::string line;
  std::size_t indent = 0;
  for (std::size_t i = 0; i + 1 < columns.size(); ++i) {
    const auto text = shortened(printable(cells[i].text), columns[i].width);
    line += padded(text, columns[i], cells[i].style, paint) + std::string(gap, ' ');
    indent += std::max(columns[i].width, ctl::columns(text)) + gap;
  }
  for (const auto& part : wrapped(printable(cells.back().text), last_width)) {
    out << without_trailing_blanks(line + paint(cells.back().style, part)) << '\n';
    line.assign(indent, ' ');
  }
}

std::vector<Cell> titles(const std::vector<Column>& columns) {
  std::vector<Cell> cells;
  cells.reserve(columns.size());
  for (const auto& column : columns) cells.emplace_back(column.title, Style::Title);
  return cells;
}

}  // namespace

std::size_t terminal_width(std::size_t otherwise) {
  if (winsize size{}; ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  if (const char* given = std::getenv("COLUMNS"))
    if (const auto width = std::strtoul(given, nullptr, 10); width > 0) return width;
  return otherwise;
}

/// A cell that is wider than its column moves the others.
void print_row(std::ostream& out, const std::vector<Column>& columns, const std::vector<Cell>& cells,
               const TableLook& look) {
  auto fitted = columns;
  std::size_t indent = 0;
  for (std::size_t i = 0; i + 1 < fitted.size(); ++i) {
    const auto needed = std::min(ctl::columns(printable(cells[i].text)), std::max(fitted[i].width, widest_cell));
    fitted[i].width = std::max(fitted[i].width, needed);
    indent += fitted[i].width + gap;
  }
  print_cells(out, fitted, cells, look.width > indent + narrowest_last ? look.width - indent : narrowest_last,
              look.paint);
}

void print_heading(std::ostream& out, const std::vector<Column>& columns, const TableLook& look) {
  print_row(out, columns, titles(columns), look);
}

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::add(std::vector<Cell> cells) { rows_.push_back(std::move(cells)); }

void Table::print(std::ostream& out, const TableLook& look) const {
  const auto shown = [&]<class Entry>(const std::vector<Entry>& row) {
    std::vector<Entry> result;
    for (std::size_t i = 0; i < row.size(); ++i)
      if (look.wide || !columns_[i].wide) result.push_back(row[i]);
    return result;
  };
  auto fitted = shown(columns_);
  std::vector<std::vector<Cell>> rows{titles(fitted)};
  for (const auto& row : rows_) rows.push_back(shown(row));
  for (const auto& row : rows)
    for (std::size_t i = 0; i < fitted.size(); ++i) {
      const auto needed = columns(printable(row[i].text));
      fitted[i].width = std::max(fitted[i].width, i + 1 == fitted.size() ? needed : std::min(needed, widest_cell));
    }
  fit(fitted, look.width);
  for (const auto& row : rows) print_cells(out, fitted, row, fitted.back().width, look.paint);
}

}  // namespace evictd::ctl
