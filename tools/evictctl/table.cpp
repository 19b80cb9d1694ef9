#include "evictctl/table.hpp"

#include <algorithm>

#include "evictctl/text.hpp"

namespace evictd::ctl {
namespace {

constexpr std::size_t gap = 2;
constexpr std::size_t widest_cell = 32;
constexpr std::size_t narrowest_last = 16;
constexpr std::size_t narrowest_text = 10;   // of a name: what distinguishes it is mostly in there
constexpr std::size_t narrowest_number = 4;  // a number that is cut short is worth nothing: they go last

/// The text has room in the column.
std::string padded(const std::string& text, const Column& column, Style style, const Paint& paint) {
  const std::string blanks(column.width - columns(text), ' ');
  return column.right ? blanks + paint(style, text) : paint(style, text) + blanks;
}

std::size_t total(const std::vector<Column>& columns) {
  std::size_t sum = gap * (columns.size() - 1);
  for (const auto& column : columns) sum += column.width;
  return sum;
}

/// Gives the cells of a row the room that they need: the last one all of it.
void widen(std::vector<Column>& columns, const std::vector<Cell>& cells) {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto needed = ctl::columns(printable(cells[i].text));
    columns[i].width = std::max(columns[i].width, i + 1 == columns.size() ? needed : std::min(needed, widest_cell));
  }
}

/// The last column gives way first, but for a rest of it; then names; then it all; numbers come last.
void fit(std::vector<Column>& columns, std::size_t width) {
  const auto narrow = [&](auto gives_way, std::size_t narrowest) {
    while (total(columns) > width) {
      Column* widest = nullptr;
      for (auto& column : columns)
        if (gives_way(column) && column.width > std::max(narrowest, widest == nullptr ? 0 : widest->width))
          widest = &column;
      if (widest == nullptr) return;
      --widest->width;
    }
  };
  const auto is_last = [&](const Column& column) { return &column == &columns.back(); };
  const auto is_name = [&](const Column& column) { return !is_last(column) && !column.right; };
  const auto is_number = [&](const Column& column) { return !is_last(column) && column.right; };
  narrow(is_last, narrowest_last);
  narrow(is_name, narrowest_text);
  narrow(is_last, narrowest_number);
  narrow(is_name, narrowest_number);
  narrow(is_number, 1);
}

void print_cells(std::ostream& out, const std::vector<Column>& columns, const std::vector<Cell>& cells,
                 const Paint& paint) {
  std::string line;
  for (std::size_t i = 0; i + 1 < columns.size(); ++i) {
    const auto text = shortened(printable(cells[i].text), columns[i].width);
    line += padded(text, columns[i], cells[i].style, paint) + std::string(gap, ' ');
  }
  for (const auto& part : wrapped(printable(cells.back().text), columns.back().width)) {
    line += paint(cells.back().style, part);
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << '\n';
    line.assign(total(columns) - columns.back().width, ' ');
  }
}

}  // namespace

std::vector<Cell> titles(const std::vector<Column>& columns) {
  std::vector<Cell> cells;
  for (const auto& column : columns) cells.emplace_back(column.title, Style::Title);
  return cells;
}

/// A cell that is wider than its column moves the others.
void print_row(std::ostream& out, const std::vector<Column>& columns, const std::vector<Cell>& cells,
               const TableLook& look) {
  auto fitted = columns;
  widen(fitted, cells);
  const auto before_last = total(fitted) - fitted.back().width;
  fitted.back().width = std::max(look.width, before_last + narrowest_last) - before_last;
  print_cells(out, fitted, cells, look.paint);
}

void Table::print(std::ostream& out, const TableLook& look, std::string_view if_empty) const {
  if (empty() && !if_empty.empty()) {
    out << if_empty << '\n';
    return;
  }
  const auto shown = [&]<class Entry>(const std::vector<Entry>& row) {
    std::vector<Entry> result;
    for (std::size_t i = 0; i < row.size(); ++i)
      if (look.wide || !columns_[i].wide) result.push_back(row[i]);
    return result;
  };
  auto fitted = shown(columns_);
  std::vector<std::vector<Cell>> rows{titles(fitted)};
  for (const auto& row : rows_) rows.push_back(shown(row));
  for (const auto& row : rows) widen(fitted, row);
  fit(fitted, look.width);
  for (const auto& row : rows) print_cells(out, fitted, row, look.paint);
}

}  // namespace evictd::ctl
