#include "fixture/documents.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "config/agent_keys.hpp"
#include "config/removed_keys.hpp"
#include "fixture/places.hpp"
#include "testbed/files.hpp"

// What can be seen of the documents without running anything: their size, and where their links lead.

namespace evictd::documents_test {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t longest_readme = 160;
constexpr std::size_t longest_line = 120;

/// Of UTF-8.
std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](unsigned char c) { return (c & 0xC0U) != 0x80U; }));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// What is wrong with a link of a document; empty where nothing is.
std::string objection(const std::string& document, const std::string& link) {
  if (link.starts_with("https://")) return {};
  const auto hash = std::min(link.find('#'), link.size());
  const auto target = hash == 0 ? fs::path(document) : fs::path(document).parent_path() / link.substr(0, hash);
  if (!fs::exists(fs::path(fixture::source_root) / target)) return "leads to no file";
  if (hash == link.size()) return {};
  const auto anchors = fixture::anchors(fixture::document(target.native()));
  return std::ranges::find(anchors, link.substr(hash + 1)) == anchors.end() ? "leads to no heading" : "";
}

/// Whether it may be meant as a key of an AgentConfiguration, and not as a file.
bool begins_with_section(const std::string& path) {
  constexpr std::array files{".md", ".yaml", ".json"};
  const auto is_of_a_name = [](unsigned char c) { return std::isalpha(c) != 0 || c == '.'; };
  if (std::ranges::any_of(files, [&](const char* ending) { return path.ends_with(ending); })) return false;
  if (!std::ranges::all_of(path, is_of_a_name)) return false;
  return std::ranges::any_of(config::agent_keys(), [&](const config::AgentKey& key) {
    return path.starts_with(key.path.substr(0, key.path.find('.')) + ".");
  });
}

bool is_key_or_section(const std::string& path) {
  return std::ranges::any_of(config::agent_keys(), [&](const config::AgentKey& key) {
    return key.path == path || key.path.starts_with(path + ".");
  });
}

std::vector<std::string> with_links() {
  auto documents = fixture::documents();
  documents.insert(documents.end(), {"CHANGELOG.md", "CONTRIBUTING.md"});
  return documents;
}

}  // namespace

TEST_CASE("every link of the documents leads to a file, and to a heading in it") {
  std::size_t followed = 0;
  for (const auto& document : with_links()) {
    CAPTURE(document);
    for (const auto& link : fixture::links(fixture::document(document))) {
      CAPTURE(link);
      CHECK(objection(document, link).empty());
      ++followed;
    }
  }
  CHECK(followed > 40);
  CHECK(objection("README.md", "tools/manual/nod.md") == "leads to no file");
  CHECK(objection("tools/manual/node.md", "cluster.md#nowhere") == "leads to no heading");
  CHECK(objection("tools/manual/node.md", "#nowhere") == "leads to no heading");
}

TEST_CASE("the README is one that is read, and the lines of all documents can be") {
  CHECK(lines_of(fixture::document("README.md")).size() <= longest_readme);
  for (const auto& document : fixture::documents()) {
    CAPTURE(document);
    for (const auto& line : lines_of(fixture::document(document))) {
      CAPTURE(line);
      CHECK(characters(line) <= longest_line);
    }
  }
}

TEST_CASE("the README and evictd(8) lead to every page of the manual, and each one is installed") {
  const auto readme = fixture::links(fixture::document("README.md"));
  const auto program_page = fixture::document("tools/manual/evictd.8.in");
  const auto installed = fixture::document("tools/manual/meson.build");
  const auto documents = fixture::documents();
  REQUIRE(documents.size() == 10);
  for (const auto& document : documents) {
    if (document == "README.md") continue;
    CAPTURE(document);
    const auto topic = fs::path(document).stem().native();
    CHECK(std::ranges::find(readme, document) != readme.end());
    CHECK(program_page.find("evictd\\-" + topic + " (7)") != std::string::npos);
    CHECK(installed.find("\n  '" + topic + "',\n") != std::string::npos);
  }
}

TEST_CASE("each configuration key that the documents name is one") {
  std::size_t named = 0;
  for (const auto& document : fixture::documents()) {
    CAPTURE(document);
    for (const auto& code : fixture::code_spans(fixture::document(document))) {
      const auto path = code.substr(0, code.find_first_of(": "));
      CHECK(config::find_removed_key(path) == nullptr);
      if (!begins_with_section(path)) continue;
      CAPTURE(code);
      CHECK(is_key_or_section(path));
      ++named;
    }
  }
  CHECK(named > 40);
  CHECK(begins_with_section("node.cgroupRoot"));
  CHECK_FALSE(begins_with_section("node.kubernetes.io/memory-pressure"));
  CHECK_FALSE(begins_with_section("node.md"));
  CHECK_FALSE(begins_with_section("shutdown.json"));
  CHECK(is_key_or_section("api.tcp"));
  CHECK_FALSE(is_key_or_section("api.tcb"));
}

TEST_CASE("evictd has as long to end in a pod of the cluster's as it has under systemd") {
  const auto number_behind = [](const char* file, std::string_view key) {
    const auto text = testbed::read_file(fs::path(fixture::source_root) / "tools/deploy" / file);
    const auto at = text.find(key);
    REQUIRE(at != std::string::npos);
    return std::stoi(text.substr(at + key.size()));
  };
  const auto in_unit = number_behind("systemd/evictd.service", "\nTimeoutStopSec=");
  CHECK(number_behind("kubernetes/30-daemonset.yaml", "terminationGracePeriodSeconds:") == in_unit);
}

TEST_CASE("links and headings are found outside code alone") {
  CHECK(fixture::links("see [a](x.md), `[b](y.md)` and [`c`\nd](z.md#e)\n```\n[f](g)\n```\n") ==
        std::vector<std::string>{"x.md", "z.md#e"});
  CHECK(fixture::code_spans("a `b` [`c\nd`](e)\n```\n`f`\n```\n") == std::vector<std::string>{"b", "c\nd"});
  CHECK(fixture::anchors("# The API, and `more`\n```sh\n# a comment\n```\n### Self-tests\n") ==
        std::vector<std::string>{"the-api-and-more", "self-tests"});
}

}  // namespace evictd::documents_test
