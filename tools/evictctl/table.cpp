#include "evictctl/table.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "evictctl/text.hpp"

namespace evictd::ctl {
namespace {

constexpr std::size_t gap = 2;
constexpr std::size_t widest_cell = 32;
constexpr std::size_t narrowest_last = 16;

std::string padded(const std::string& cell, const Column& column) {
  const std::size_t used = columns(cell);
  const std::string blanks(column.width > used ? column.width - used : 0, ' ');
  return column.right ? blanks + cell : cell + blanks;
}

std::string without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::size_t terminal_width() {
  if (winsize size{}; ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  if (const char* given = std::getenv("COLUMNS"))
    if (const auto width = std::strtoul(given, nullptr, 10); width > 0) return width;
  return 80;
}

void print_row(std::ostream& out, const std::vector<Column>& columns, const std::vector<std::string>& cells,
               std::size_t width) {
  std::string line;
  for (std::size_t i = 0; i + 1 < columns.size(); ++i)
    line += padded(shortened(printable(cells[i]), std::max(columns[i].width, widest_cell)), columns[i]) +
            std::string(gap, ' ');
  const std::size_t indent = ctl::columns(line);
  const std::size_t rest = width > indent + narrowest_last ? width - indent : narrowest_last;
  for (const auto& part : wrapped(printable(cells.back()), rest)) {
    out << without_trailing_blanks(line + part) << '\n';
    line.assign(indent, ' ');
  }
}

void print_heading(std::ostream& out, const std::vector<Column>& columns, std::size_t width) {
  std::vector<std::string> titles;
  titles.reserve(columns.size());
  for (const auto& column : columns) titles.push_back(column.title);
  print_row(out, columns, titles, width);
}

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

void Table::print(std::ostream& out, std::size_t width) const {
  auto fitted = columns_;
  for (std::size_t i = 0; i < fitted.size(); ++i) {
    fitted[i].width = std::max(fitted[i].width, columns(fitted[i].title));
    for (const auto& row : rows_)
      fitted[i].width = std::max(fitted[i].width, std::min(columns(printable(row[i])), widest_cell));
  }
  print_heading(out, fitted, width);
  for (const auto& row : rows_) print_row(out, fitted, row, width);
}

}  // namespace evictd::ctl
