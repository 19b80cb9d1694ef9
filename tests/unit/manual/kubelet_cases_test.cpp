#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "fixture/documents.hpp"
#include "fixture/places.hpp"

// The manual's table of the kubelet's end-to-end cases names tests of ours. They are there, by these names.

namespace evictd::kubelet_cases_test {
namespace {

namespace fs = std::filesystem;

const fs::path tests = fs::path(fixture::source_root) / "tests";

/// A row of the table: the kubelet's case, our test, and what that runs with.
using Row = std::vector<std::string>;

Row cells_of(const std::string& line) {
  Row cells;
  std::istringstream row{line.substr(1)};
  for (std::string cell; std::getline(row, cell, '|');) {
    const auto begin = cell.find_first_not_of(' ');
    cells.push_back(begin == std::string::npos ? "" : cell.substr(begin, cell.find_last_not_of(' ') - begin + 1));
  }
  return cells;
}

std::vector<Row> rows_of(const std::string& page, std::string_view heading) {
  std::vector<Row> rows;
  std::istringstream lines{page.substr(std::min(page.find(heading), page.size()))};
  std::string line;
  std::getline(lines, line);  // the heading itself
  while (std::getline(lines, line) && !line.starts_with("## "))
    if (line.starts_with("|")) rows.push_back(cells_of(line));
  rows.erase(rows.begin(), rows.begin() + std::min<std::ptrdiff_t>(2, std::ssize(rows)));  // its heads
  return rows;
}

/// Of all files of this name: several suites may have one.
std::vector<std::string> texts_of(const std::string& file) {
  std::vector<std::string> texts;
  for (const auto& entry : fs::recursive_directory_iterator(tests)) {
    if (entry.path().filename() != file + ".cpp") continue;
    std::ifstream in(entry.path());
    texts.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return texts;
}

/// "" where the test is there.
std::string objection(const Row& row) {
  if (row.size() != 3) return "is no row";
  const auto& test = row[1];
  if (test.starts_with("none")) return row[2].empty() ? "" : "runs with something and is not there";
  if (row[2].starts_with("scenario")) return fs::exists(tests / "scenarios" / (test + ".yaml")) ? "" : "is no scenario";
  const auto colon = test.find(": ");
  if (colon == std::string::npos) return "names no test case";
  const auto texts = texts_of(test.substr(0, colon));
  const auto is_there = [&](const std::string& text) { return text.contains(test.substr(colon + 2)); };
  if (texts.empty()) return "is no file of tests";
  return std::ranges::any_of(texts, is_there) ? "" : "is no test case there";
}

}  // namespace

TEST_CASE("each test that the manual has for a case of the kubelet's is there") {
  const auto rows = rows_of(fixture::document("tools/manual/thresholds.md"), "## The kubelet's end-to-end cases");
  CHECK(rows.size() > 20);
  for (const auto& row : rows) {
    CAPTURE(row.front());
    CHECK(objection(row) == "");
  }
}

TEST_CASE("a test that is not there is found") {
  CHECK(objection({"A", "none yet", ""}) == "");
  CHECK(objection({"A", "none yet", "pods"}) == "runs with something and is not there");
  CHECK(objection({"A", "k00-nothing", "scenario"}) == "is no scenario");
  CHECK(objection({"A", "nothing_test: all", "pods"}) == "is no file of tests");
  CHECK(objection({"A", "pids_test: nobody at all", "pods"}) == "is no test case there");
  CHECK(rows_of("# A\n| a |\n## B\n| b | c |\n|---|---|\n| d |  |\n## C\n| e |\n", "## B") ==
        std::vector<Row>{{"d", ""}});
}

}  // namespace evictd::kubelet_cases_test
