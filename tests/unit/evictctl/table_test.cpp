#include "evictctl/table.hpp"

#include <doctest/doctest.h>

#include <sstream>

namespace evictd::ctl {
namespace {

std::string print(const Table& table, std::size_t width = 80) {
  std::ostringstream out;
  table.print(out, width);
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

TEST_CASE("an overlong cell is cut short, and the last column keeps some room however narrow the terminal") {
  Table table({{.title = "A"}, {.title = "TEXT"}});
  table.add({std::string(50, 'x'), "0123456789abcdef0"});
  CHECK(print(table, 30) == "A" + std::string(33, ' ') + "TEXT\n" + std::string(31, 'x') + "…  0123456789abcdef\n" +
                                std::string(34, ' ') + "0\n");
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
  print_heading(out, columns, 80);
  print_row(out, columns, {"12", "x"}, 80);
  print_row(out, columns, {"12345678", "y"}, 80);
  CHECK(out.str() ==
        "   SEQ  WHAT\n"
        "    12  x\n"
        "12345678  y\n");
}

}  // namespace
}  // namespace evictd::ctl
