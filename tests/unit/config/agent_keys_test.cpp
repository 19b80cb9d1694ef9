#include "config/agent_keys.hpp"

#include <doctest/doctest.h>
#include <yaml-cpp/yaml.h>

#include <set>

namespace evictd::config::agent_keys_test {

TEST_CASE("every key has a name and a sentence, and all but the directories a section; it stands there once") {
  std::set<std::string> paths;
  for (const auto& key : agent_keys()) {
    CAPTURE(key.path);
    CHECK(paths.insert(key.path).second);
    CHECK_FALSE(key.name().empty());
    if (key.section().empty())
      CHECK(key.name().ends_with("Directory"));
    else
      CHECK(key.path == std::string(key.section()) + "." + std::string(key.name()));
    CHECK(key.name().find('.') == std::string_view::npos);
    CHECK(key.meaning.ends_with('.'));
  }
}

TEST_CASE("the keys of a section stand together") {
  std::set<std::string_view> ended;
  std::string_view section = "none";
  for (const auto& key : agent_keys()) {
    if (key.section() == section) continue;
    ended.insert(section);
    section = key.section();
    CHECK_FALSE(ended.contains(section));
  }
}

TEST_CASE("the defaults keep to their own ranges") {
  for (const auto& key : agent_keys()) {
    CAPTURE(key.path);
    const YAML::Node text(key.print({}));
    AgentConfiguration configuration;
    CHECK(key.read(Value(text, "defaults"), configuration).has_value());
  }
}

}  // namespace evictd::config::agent_keys_test
