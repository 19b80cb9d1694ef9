#pragma once
#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

namespace evictd::ctl {

/// The columns of the terminal, or what COLUMNS says, or 80.
[[nodiscard]] std::size_t terminal_width();

struct Column {
  std::string title;
  bool right = false;     ///< numbers stand under each other
  std::size_t width = 0;  ///< at least this wide
};

/// Rows under a heading, two blanks between columns. The last column takes the rest of the line and goes on below
/// itself; in the others what is longer than 32 columns is cut short. Cells are made printable.
class Table {
 public:
  explicit Table(std::vector<Column> columns);

  void add(std::vector<std::string> cells);
  [[nodiscard]] bool empty() const { return rows_.empty(); }

  /// Columns as wide as their cells; lines of at most `width`, unless the columns before the last leave less than 16
  /// for it.
  void print(std::ostream& out, std::size_t width) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// One row of a table that is printed as it grows, with columns of fixed width.
void print_row(std::ostream& out, const std::vector<Column>& columns, const std::vector<std::string>& cells,
               std::size_t width);
void print_heading(std::ostream& out, const std::vector<Column>& columns, std::size_t width);

}  // namespace evictd::ctl
