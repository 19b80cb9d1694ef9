#include "evictctl/table.hpp"

#include <doctest/doctest.h>

#include <sstream>

#include "evictctl/text.hpp"

namespace evictd::ctl::table_test {
namespace {

std::string print(const Table& table, std::size_t width = 80) {
  std::ostringstream out;
  table.print(out, {.width = width});
  return out.str();
}

TEST_CASE("columns are as wide as what stands in them, numbers to the right") {
  Table table({{.title = "NAME"}, {.title = "N", .right = true}, {.title = "TEXT"}});
  table.add({"memcg", "7", "armed"});
  table.add({"psi", "1234", ""});
  CHECK(print(table) ==
        "NAME      N  TEXT\n"
        "memcg     7  armed\n"
        "psi    1234\n");
}

TEST_CASE("the last column goes on below itself") {
  Table table({{.title = "A"}, {.title = "TEXT"}});
  table.add({"x", "one two three four five six"});
  CHECK(print(table, 20) ==
        "A  TEXT\n"
        "x  one two three\n"
        "   four five six\n");
}

TEST_CASE("an overlong cell is cut short") {
  Table table({{.title = "A"}, {.title = "TEXT"}});
  table.add({std::string(50, 'x'), "0123456789abcdef0"});
  CHECK(print(table) == "A" + std::string(33, ' ') + "TEXT\n" + std::string(31, 'x') + "…  0123456789abcdef0\n");
}

TEST_CASE("where the line is too narrow names are cut shorter, numbers are not, and the last column keeps some room") {
  Table table({{.title = "NAME"}, {.title = "N", .right = true}, {.title = "TEXT"}});
  table.add({"a-rather-long-name-of-a-pod", "123456", "0123456789abcdef0"});
  CHECK(print(table, 40) ==
        "NAME                 N  TEXT\n"
        "a-rather-long…  123456  0123456789abcdef\n"
        "                        0\n");
  CHECK(print(table, 30) ==
        "NAME             N  TEXT\n"
        "a-rather-…  123456  0123456789\n"
        "                    abcdef0\n");
}

TEST_CASE("nothing runs over, however narrow the terminal") {
  Table table({{.title = "NAME"}, {.title = "NUMBER", .right = true}, {.title = "OTHER"}, {.title = "TEXT"}});
  table.add({std::string(40, 'a'), "1234567890", std::string(40, 'b'), std::string(100, 'c')});
  for (std::size_t width = 20; width < 200; ++width) {
    std::istringstream lines(print(table, width));
    for (std::string line; std::getline(lines, line);) CHECK(columns(line) <= width);
  }
}

TEST_CASE("colours change nothing but the colour") {
  Table table({{.title = "NAME"}, {.title = "N", .right = true}, {.title = "TEXT"}});
  table.add({{"x", Style::Bad}, {"7", Style::Warning}, {"on", Style::Bad}});
  std::ostringstream out;
  table.print(out, {.width = 80, .paint = Paint{true}});
  auto text = out.str();
  CHECK(text.find("\x1b[1;31mx\x1b[0m     \x1b[33m7\x1b[0m  \x1b[1;31mon\x1b[0m\n") != std::string::npos);
  for (std::size_t at = 0; (at = text.find('\x1b')) != std::string::npos;) text.erase(at, text.find('m', at) - at + 1);
  CHECK(text == print(table));
}

TEST_CASE("what is in a cell cannot break the table") {
  Table table({{.title = "A"}, {.title = "TEXT"}});
  table.add({"x\ny", "\x1b[2J"});
  CHECK(print(table) ==
        "A     TEXT\n"
        "x\\ny  \\x1b[2J\n");
}

TEST_CASE("a column of fixed width makes room for rows to come") {
  std::ostringstream out;
  const std::vector<Column> columns{{.title = "SEQ", .right = true, .width = 6}, {.title = "WHAT"}};
  print_row(out, columns, titles(columns), {});
  print_row(out, columns, {"12", "x"}, TableLook{});
  print_row(out, columns, {"12345678", "y"}, TableLook{});
  CHECK(out.str() ==
        "   SEQ  WHAT\n"
        "    12  x\n"
        "12345678  y\n");
}

}  // namespace
}  // namespace evictd::ctl::table_test
