// tools/measure-house counts; that a number is right shows in a tree that is small enough to count by hand.
#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "fixture/places.hpp"
#include "fixture/tree.hpp"
#include "testbed/process.hpp"

namespace evictd::tools::measure_house_test {

namespace {

namespace fs = std::filesystem;
using evictd::fixture::dir;
using evictd::fixture::file;

fs::path program() { return fs::path(evictd::fixture::source_root) / "tools/measure-house"; }

/// What it prints, by name. Fails where it ends with an error.
std::map<std::string, std::string> measures(const std::vector<std::string>& arguments) {
  std::vector<std::string> command{program()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  std::map<std::string, std::string> found;
  std::istringstream lines(testbed::run(command));
  for (std::string line; std::getline(lines, line);) {
    const auto space = line.find(' ');
    REQUIRE(space != std::string::npos);
    found.emplace(line.substr(0, space), line.substr(space + 1));
  }
  return found;
}

}  // namespace

TEST_CASE("the tree's measures are printed, each with a number, and every file on the way to the kill is there") {
  const auto printed = measures({});
  for (const auto* name : {"lines-of-src", "files-of-src", "files-from-eventfd-to-stop-container", "members-of-agent",
                           "functions-of-agent", "parts-of-agent",
                           "lines-of-agent-and-evict-that-no-unit-test-includes", "lines-of-headers-with-std-function",
                           "files-of-a-signal", "configuration-keys", "lines-of-readme", "longest-line-of-readme",
                           "edges-between-folders", "lines-of-benchmarks", "lines-of-evictctl", "lines-of-testbed"}) {
    CAPTURE(name);
    REQUIRE(printed.contains(name));
    CHECK_NOTHROW(static_cast<void>(std::stol(printed.at(name))));
  }
  CHECK(std::stol(printed.at("lines-of-src")) > 10'000);
  CHECK(std::stol(printed.at("members-of-agent")) > 0);
}

TEST_CASE("a class, its parts, edges and lines that no test includes are counted as they are written") {
  const evictd::fixture::Tree tree{std::vector{
      dir("src",
          {dir("agent", {file("agent.hpp",
                              "#include \"core/pod.hpp\"\n"
                              "class Other;\n"
                              "class Agent {\n"
                              " public:\n"
                              "  struct Parts {\n"
                              "    Reader& reader;  // and; a comment\n"
                              "    std::function<void()> told;\n"
                              "    Cluster* cluster = nullptr;\n"
                              "  };\n"
                              "  explicit Agent(Parts parts);\n"
                              "  Agent& operator=(const Agent&) = delete;\n"
                              "  void on_change(std::function<void(bool)> f = {}) { if (f) { f_ = f; } }\n"
                              "  [[nodiscard]] int size() const { return 1; }\n"
                              " private:\n"
                              "  void pass();\n"
                              "  Parts parts_;\n"
                              "  std::function<void(bool)> f_;\n"
                              "  std::map<std::string, int> by_name_{{\"a\", 1}};\n"
                              "  int count_ = make(1);\n"
                              "};\n"),
                         file("agent.cpp", "#include \"agent/agent.hpp\"\n\n"),
                         file("agent_more.cpp", "#include \"agent/agent.hpp\"\n"),
                         file("told.cpp", "#include \"agent/told.hpp\"\n"), file("told.hpp", "")}),
           dir("config", {file("agent_keys.cpp", "key<1>(a), key<2>(b),\n")}), dir("core", {file("pod.hpp", "")})}),
      dir("tests", {dir("unit", {file("told_test.cpp", "#include \"agent/told.hpp\"\n")})}),
      dir("tools", {file("kill-path", "# nothing but\nagent/agent.hpp pass\n")}), file("README.md", "a\nlonger\n")}};
  const auto printed = measures({tree.path().native()});
  CHECK(printed.at("files-of-src") == "7");
  CHECK(printed.at("files-from-eventfd-to-stop-container") == "1");
  CHECK(printed.at("parts-of-agent") == "3");
  CHECK(printed.at("members-of-agent") == "4");
  CHECK(printed.at("functions-of-agent") == "5");
  CHECK(printed.at("lines-of-agent-and-evict-that-no-unit-test-includes") == "3");
  CHECK(printed.at("lines-of-headers-with-std-function") == "3");
  CHECK(printed.at("configuration-keys") == "2");
  CHECK(printed.at("lines-of-readme") == "2");
  CHECK(printed.at("longest-line-of-readme") == "6");
  CHECK(printed.at("edges-between-folders") == "1");
}

}  // namespace evictd::tools::measure_house_test
