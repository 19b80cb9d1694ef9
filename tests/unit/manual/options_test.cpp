#include <doctest/doctest.h>

#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "fixture/places.hpp"
#include "testbed/files.hpp"
#include "testbed/process.hpp"
#include "testbed/programs.hpp"

namespace evictd::manual::options_test {

// A manual page names the options that its program declares, and no others.

namespace {

using Names = std::set<std::string>;

Names matches(const std::string& text, const std::regex& pattern) {
  Names names;
  for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match)
    names.insert((*match)[1]);
  return names;
}

/// As a text that a failure can show.
std::string listed(const Names& names) {
  std::string text;
  for (const auto& name : names) text += name + ' ';
  return text;
}

/// The help of a program and of all its commands.
std::string help(const std::filesystem::path& program, const std::vector<std::string>& path = {}) {
  std::vector<std::string> command{program};
  command.insert(command.end(), path.begin(), path.end());
  command.emplace_back("--help");
  auto text = testbed::run(command);
  const auto list = text.find("\nSubcommands:\n");
  if (list == std::string::npos) return text;
  for (const auto& name : matches(text.substr(list), std::regex("\n  ([a-z-]+) "))) {
    auto below = path;
    below.push_back(name);
    text += help(program, below);
  }
  return text;
}

Names declared(const std::filesystem::path& program) {
  return matches(help(program), std::regex("(?:^|[\n ,])(--?[a-z][a-z-]*)"));
}

Names in_page(const char* name) {
  const auto file = std::filesystem::path(evictd::fixture::source_root) / "tools/manual" / name;
  const auto text = std::regex_replace(testbed::read_file(file), std::regex(R"(\\f[BIR]|\\(?=-))"), "");
  return matches(text, std::regex("[\n \\[,](--?[a-z][a-z-]*)"));
}

}  // namespace

TEST_CASE("evictd(8) names the options of evictd") {
  CHECK(listed(in_page("evictd.8.in")) == listed(declared(testbed::evictd_program())));
}

TEST_CASE("evictctl(1) names the options of evictctl") {
  CHECK(listed(in_page("evictctl.1.in")) == listed(declared(testbed::evictctl_program())));
}

}  // namespace evictd::manual::options_test
