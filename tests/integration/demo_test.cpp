#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "fixture/places.hpp"
#include "testbed/process.hpp"
#include "testbed/programs.hpp"

namespace integration::demo_test {

using namespace std::chrono_literals;

namespace {

/// The only line that begins so; empty otherwise.
std::string line_of(const std::string& text, std::string_view beginning) {
  std::string found;
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(beginning)) found = found.empty() ? line : "";
  return found;
}

bool has(const std::string& line, std::string_view words) { return line.find(words) != std::string::npos; }

}  // namespace

TEST_CASE("the demo shows side by side what comes of a database that is killed at once, and of one that is held") {
  testbed::Process demo({testbed::demo_program(), "--graceful"});
  CHECK(demo.wait(5min) == 0);
  const auto shown = demo.output();
  CAPTURE(shown);
  CAPTURE(demo.errors());
  const auto killed = line_of(shown, "  killed at once ");
  CHECK(has(killed, " 0.0 of 20 MiB, incomplete "));
  CHECK(has(killed, " signal 9 "));
  CHECK(has(killed, " - "));
  const auto held = line_of(shown, "  brake: {time: ");
  CHECK(has(held, " 20.0 of 20 MiB, whole "));
  CHECK(has(held, " exit code 0 "));
  CHECK(has(held, " ended "));
  CHECK(shown.find(" BRAKED ") > shown.find("On a new node"));  // by the real events: none before
  CHECK(shown.ends_with("Everything the demo made is removed again.\n"));
}

TEST_CASE("the demo and its script refuse what they do not know, and the script's help has --graceful") {
  const std::string script = std::filesystem::path(evictd::fixture::source_root) / "tools/demo";
  const std::vector<std::vector<std::string>> refused = {{script, "--gracefully"},
                                                         {script, "--graceful", "twice"},
                                                         {testbed::demo_program(), "--gracefully"},
                                                         {testbed::demo_program(), "--graceful", "twice"}};
  for (const auto& command : refused) {
    testbed::Process process(command);
    CHECK(process.wait(10s) == 2);
    CHECK(process.errors().starts_with("usage: "));
    CHECK(process.output().empty());
  }
  const auto help = testbed::run({script, "--help"});
  CHECK(help.starts_with("usage: tools/demo [--graceful]"));
  CHECK(testbed::run({script, "-h"}) == help);
}

}  // namespace integration::demo_test
