#include "config/removed_keys.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "config/agent_configuration.hpp"
#include "config/agent_keys.hpp"
#include "fixture/result.hpp"

namespace evictd::config::removed_keys_test {
namespace {

using fixture::error_of;

Result<AgentConfiguration> parse(const std::string& body) {
  return parse_agent_configuration("apiVersion: evictd.io/v1alpha1\nkind: AgentConfiguration\n" + body, "agent.yaml");
}

/// "a.b.c" with its value as a document: a mapping a line.
std::string document(std::string_view path, std::string_view value) {
  std::string text;
  std::string indent;
  for (auto dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.')) {
    text += fmt::format("{}{}:\n", indent, path.substr(0, dot));
    path.remove_prefix(dot + 1);
    indent += "  ";
  }
  return text + fmt::format("{}{}: {}\n", indent, path, value);
}

bool is_key(std::string_view path) {
  return std::ranges::find(agent_keys(), path, &AgentKey::path) != agent_keys().end();
}

/// What the text says to use, where it names keys of an AgentConfiguration: "use notifier.disable: [memcg]".
std::vector<std::string> keys_named(std::string_view text) {
  std::vector<std::string> names;
  for (const auto& key : agent_keys()) {
    const auto at = text.find(key.path);
    if (at != std::string_view::npos) names.push_back(key.path);
  }
  return names;
}

}  // namespace

TEST_CASE("every key that was removed is one line with file, line, the key and what there is instead") {
  for (const auto& removed : removed_keys()) {
    CAPTURE(removed.path);
    for (const auto* value : {"1", "\"\"", "[a]", "{a: 1}", ""}) {
      const auto text = document(removed.path, value);
      const auto line = 2 + std::ranges::count(text, '\n');
      CHECK(error_of(parse(text)) ==
            fmt::format("agent.yaml:{}: {}: no longer a key: {}", line, removed.path, removed.instead));
    }
  }
}

TEST_CASE("the keys that were removed are these, each once, and none is a key now") {
  const std::set<std::string_view> expected{
      // In directories.
      "node.lockFile", "eviction.stateFile", "shutdown.stateFile", "api.socket", "api.adminSocket", "criProxy.socket",
      "thresholds.stateFile", "admission.stateFile", "api.historyDirectory",
      // Switches.
      "notifier.memcg", "notifier.oomControl", "notifier.files", "notifier.sampler", "notifier.psi",
      // A choice of three.
      "notifier.fence",
      // Left to the unit, and to the kubelet.
      "protection.lockMemory", "protection.oomScoreAdjust", "protection.scheduler", "node.podLogsDir",
      // Constants.
      "cri.refreshInterval", "podSources.kubelet.interval", "notifier.filesInterval", "notifier.psiWindow",
      "api.writeTimeout"};
  std::set<std::string_view> paths;
  for (const auto& removed : removed_keys()) {
    CAPTURE(removed.path);
    CHECK(paths.insert(removed.path).second);
    CHECK_FALSE(is_key(removed.path));
    CHECK_FALSE(removed.instead.empty());
    CHECK_FALSE(removed.instead.ends_with('.'));
  }
  CHECK(paths == expected);
}

TEST_CASE("what was a path is in a directory, and what was a switch is in the list") {
  const auto instead = [](std::string_view path) {
    const auto* removed = find_removed_key(path);
    REQUIRE(removed != nullptr);
    return keys_named(removed->instead);
  };
  using Keys = std::vector<std::string>;
  for (const auto* path : {"thresholds.stateFile", "admission.stateFile", "api.historyDirectory"})
    CHECK(instead(path) == Keys{"stateDirectory"});
  for (const auto* path : {"node.lockFile", "eviction.stateFile", "shutdown.stateFile", "api.socket", "api.adminSocket",
                           "criProxy.socket"})
    CHECK(instead(path) == Keys{"runtimeDirectory"});
  for (const auto* path :
       {"notifier.memcg", "notifier.oomControl", "notifier.files", "notifier.sampler", "notifier.psi"})
    CHECK(instead(path) == Keys{"notifier.disable"});
  CHECK(instead("notifier.fence") == Keys{"notifier.v2"});
  CHECK(instead("notifier.psiWindow") == Keys{"notifier.psiSome", "notifier.psiFull"});
}

TEST_CASE("the files that the table names are those there are") {
  const auto state = state_files({});
  const auto runtime = runtime_files({});
  const auto name = [](const std::string& path) { return '"' + path.substr(path.rfind('/') + 1) + '"'; };
  const std::vector<std::pair<std::string_view, std::string>> files{{"node.lockFile", runtime.lock},
                                                                    {"eviction.stateFile", runtime.state},
                                                                    {"shutdown.stateFile", runtime.shutdown},
                                                                    {"api.socket", runtime.socket},
                                                                    {"api.adminSocket", runtime.admin_socket},
                                                                    {"criProxy.socket", runtime.cri_socket},
                                                                    {"thresholds.stateFile", state.thresholds},
                                                                    {"admission.stateFile", state.allocations},
                                                                    {"api.historyDirectory", state.events}};
  for (const auto& [path, file] : files) {
    CAPTURE(path);
    CHECK(find_removed_key(path)->instead.ends_with(name(file)));
  }
}

TEST_CASE("a mapping whose keys are all gone holds nothing") {
  CHECK(had_keys("protection"));
  CHECK_FALSE(had_keys("protectio"));
  CHECK_FALSE(had_keys("log"));
  CHECK(parse("protection: {}\n").has_value());
  CHECK(error_of(parse("protection: {priority: 1}\n")) ==
        "agent.yaml:3: protection.priority: unknown key; those known here are steerOom");
  CHECK(error_of(parse("protection.lockMemory: true\n")).find("unknown key") != std::string::npos);
}

}  // namespace evictd::config::removed_keys_test
