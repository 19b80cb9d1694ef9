#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
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

const fs::path tests = fs::path(fixture::source_root) / "tests" / "integration";

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

/// What tests run with -> the suite that they are in, which is left out where it cannot run; empty: in none.
const std::map<std::string, std::string> suites{{"pods", ""}, {"disk", ""}, {"pods, containerd 2.1", "image volumes"}};

/// The suite that this place of a file lies in; empty: in none.
std::string suite_at(const std::string& text, std::size_t place) {
  constexpr std::string_view beginning = "TEST_SUITE_BEGIN(\"";
  const auto begin = text.rfind(beginning, place);
  if (begin == std::string::npos || text.find("TEST_SUITE_END", begin) < place) return {};
  const auto name = begin + beginning.size();
  return text.substr(name, text.find('"', name) - name);
}

/// "" where the test is there, and runs with what the row says.
std::string objection(const Row& row) {
  if (row.size() != 3) return "is no row";
  const auto& test = row[1];
  if (test.starts_with("none")) return row[2].empty() ? "" : "runs with something and is not there";
  const auto suite = suites.find(row[2]);
  if (suite == suites.end()) return "runs with nothing that is known";
  const auto colon = test.find(": ");
  if (colon == std::string::npos) return "names no test case";
  const auto words = test.substr(colon + 2);
  if (words.contains(',')) return "has a comma, at which -tc ends";
  std::ifstream file(tests / (test.substr(0, colon) + ".cpp"));
  if (!file) return "is no file of tests";
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const auto place = text.find(words);
  if (place == std::string::npos) return "is no test case there";
  return suite_at(text, place) == suite->second ? "" : "is in another suite";
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
  CHECK(objection({"A", "k01-memory-pressure", "pods"}) == "names no test case");
  CHECK(objection({"A", "nothing_test: all", "pods"}) == "is no file of tests");
  CHECK(objection({"A", "pids_test: nobody at all", "pods"}) == "is no test case there");
  CHECK(objection({"A", "pids_test: of pods that fork", "pods"}) == "");
  CHECK(objection({"A", "pids_test: of pods that fork", "scenario"}) == "runs with nothing that is known");
  CHECK(objection({"A", "pids_test: goes first, however many", "pods"}) == "has a comma, at which -tc ends");
}

TEST_CASE("a test that not every containerd runs says so") {
  const std::string test = "node_reclaim_test: an image that a container has mounted as a volume stays";
  CHECK(objection({"A", test, "pods, containerd 2.1"}) == "");
  CHECK(objection({"A", test, "pods"}) == "is in another suite");
  CHECK(objection({"A", "pids_test: of pods that fork", "pods, containerd 2.1"}) == "is in another suite");
  const std::string text = "A TEST_SUITE_BEGIN(\"b\") B TEST_SUITE_END() C";
  CHECK(suite_at(text, text.find('A')) == "");
  CHECK(suite_at(text, text.find('B', text.find(") B"))) == "b");
  CHECK(suite_at(text, text.find('C')) == "");
}

TEST_CASE("a table has rows up to the next heading, each with its cells") {
  CHECK(rows_of("# A\n| a |\n## B\n| b | c |\n|---|---|\n| d |  |\n## C\n| e |\n", "## B") ==
        std::vector<Row>{{"d", ""}});
}

}  // namespace evictd::kubelet_cases_test
