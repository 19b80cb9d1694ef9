#pragma once
#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "evictctl/paint.hpp"

namespace evictd::ctl {

/// How tables are to look.
struct TableLook {
  std::size_t width = 80;
  bool wide = false;  ///< with all columns that there are
  Paint paint{};
};

struct Column {
  std::string title;
  bool right = false;     ///< numbers stand under each other
  std::size_t width = 0;  ///< at least this wide
  bool wide = false;      ///< in a wide table alone
};

[[nodiscard]] inline Column left(const char* title, std::size_t width = 0) { return {.title = title, .width = width}; }
[[nodiscard]] inline Column right(const char* title, std::size_t width = 0) {
  return {.title = title, .right = true, .width = width};
}
[[nodiscard]] inline Column in_wide(Column column) {
  column.wide = true;
  return column;
}

struct Cell {
  // Most cells are just a text.
  Cell(std::string words, Style look = Style::Plain) : text(std::move(words)), style(look) {}  // NOLINT
  Cell(const char* words, Style look = Style::Plain) : text(words), style(look) {}             // NOLINT

  std::string text;
  Style style;
};

/// What stands above the columns.
[[nodiscard]] std::vector<Cell> titles(const std::vector<Column>& columns);

/// Rows under a heading, two blanks between columns. The last column takes the rest of the line and goes on below
/// itself; in the others what is longer than 32 columns is cut short, and more where the line is too narrow for all.
/// Cells are made printable.
class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void add(std::vector<Cell> cells) { rows_.push_back(std::move(cells)); }
  [[nodiscard]] bool empty() const { return rows_.empty(); }

  /// Columns as wide as their cells; no line is longer than the look is wide. `if_empty`, where it says anything, is
  /// the line that stands in place of a table without rows.
  void print(std::ostream& out, const TableLook& look, std::string_view if_empty = {}) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

/// One row of a table that is printed as it grows, with columns of fixed width. The last one takes at least 16 columns.
void print_row(std::ostream& out, const std::vector<Column>& columns, const std::vector<Cell>& cells,
               const TableLook& look);

}  // namespace evictd::ctl
