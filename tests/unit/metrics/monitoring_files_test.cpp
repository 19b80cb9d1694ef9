#include <doctest/doctest.h>

#include <boost/json.hpp>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "fixture/places.hpp"
#include "metrics/filled.hpp"
#include "testbed/files.hpp"
#include "testbed/process.hpp"

namespace evictd::metrics::monitoring_files_test {

namespace json = boost::json;

namespace {

const std::filesystem::path& monitoring() {
  static const auto directory = std::filesystem::path(evictd::fixture::source_root) / "tools/deploy/monitoring";
  return directory;
}

/// Every name under which Prometheus has a sample of ours.
std::set<std::string> sample_names() {
  std::set<std::string> names;
  std::istringstream lines(evictd::test::filled_text());
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with('#')) names.insert(line.substr(0, line.find_first_of("{ ")));
  return names;
}

std::set<std::string> names_in(const std::string& file) {
  const auto text = testbed::read_file(monitoring() / file);
  const std::regex name("evictd_[a-z_]+");
  return {std::sregex_token_iterator(text.begin(), text.end(), name), std::sregex_token_iterator()};
}

}  // namespace

TEST_CASE("dashboard and alert rules use metrics that exist, and the dashboard leaves few out") {
  const auto exist = sample_names();
  for (const auto* file : {"dashboard.json", "rules.yaml", "rules_test.yaml"}) {
    const auto used = names_in(file);
    CHECK(used.size() > 5);
    for (const auto& name : used) {
      CAPTURE(file);
      CAPTURE(name);
      CHECK(exist.contains(name));
    }
  }
  CHECK(names_in("dashboard.json").size() > 40);
}

TEST_CASE("promtool takes the alert rules and the example of a scrape configuration, and the rules' own tests pass") {
  testbed::run({"promtool", "check", "rules", monitoring() / "rules.yaml"});
  testbed::run({"promtool", "check", "config", monitoring() / "prometheus.yaml"});
  testbed::run({"promtool", "test", "rules", monitoring() / "rules_test.yaml"});
}

TEST_CASE("the dashboard is JSON in which every panel but the headings has a query") {
  const auto dashboard = json::parse(testbed::read_file(monitoring() / "dashboard.json"));
  std::size_t panels = 0;
  for (const auto& panel : dashboard.at("panels").as_array()) {
    if (panel.at("type") == "row") continue;
    ++panels;
    CAPTURE(std::string(panel.at("title").as_string()));
    REQUIRE_FALSE(panel.at("targets").as_array().empty());
    for (const auto& target : panel.at("targets").as_array()) CHECK_FALSE(target.at("expr").as_string().empty());
  }
  CHECK(panels > 20);
}

}  // namespace evictd::metrics::monitoring_files_test
