#include "config/agent_configuration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "config/agent_keys.hpp"
#include "config/nearest.hpp"
#include "config/yaml.hpp"

namespace evictd::config {
namespace {

using A = AgentConfiguration;

std::vector<std::string_view> section_names() {
  std::vector<std::string_view> names;
  for (const auto& key : agent_keys())
    if (names.empty() || names.back() != key.section()) names.push_back(key.section());
  return names;
}

std::vector<std::string_view> key_names(std::string_view section) {
  std::vector<std::string_view> names;
  for (const auto& key : agent_keys())
    if (key.section() == section) names.push_back(key.name());
  return names;
}

/// The full path of the key that has this name in another section.
std::optional<std::string_view> path_of(std::string_view name) {
  const auto found = std::ranges::find(agent_keys(), name, &AgentKey::name);
  if (found == agent_keys().end()) return std::nullopt;
  return found->path;
}

Error unknown_key(const Value& value, std::string_view name, const std::vector<std::string_view>& siblings) {
  auto meant = nearest(name, siblings);
  if (!meant) meant = path_of(name);
  if (meant) return value.error(fmt::format("unknown key; did you mean \"{}\"?", *meant));
  return value.error(fmt::format("unknown key; those known here are {}", fmt::join(siblings, ", ")));
}

using Lines = std::map<std::string, Value, std::less<>>;

Result<void> read_section(const std::string& section, const Value& mapping, A& target, Lines& lines) {
  const auto entries = mapping.entries();
  if (!entries) return std::unexpected(entries.error());
  for (const auto& [name, value] : *entries) {
    const auto known = std::ranges::find(agent_keys(), fmt::format("{}.{}", section, name), &AgentKey::path);
    if (known == agent_keys().end()) return std::unexpected(unknown_key(value, name, key_names(section)));
    if (value.is_null()) continue;
    if (auto result = known->read(value, target); !result) return result;
    lines.emplace(known->path, value);
  }
  return {};
}

/// The defaults fit into any window, so a stall that does not is written down.
Result<void> check_psi(const NotifierSettings& notifier, const Lines& lines) {
  for (const auto& [stall, key] :
       {std::pair{notifier.psi_some, "notifier.psiSome"}, std::pair{notifier.psi_full, "notifier.psiFull"}})
    if (stall > notifier.psi_window)
      return std::unexpected(lines.at(key).error(fmt::format(
          "{} is longer than notifier.psiWindow ({})", core::to_string(stall), core::to_string(notifier.psi_window))));
  return {};
}

/// What no key can say of itself alone.
Result<void> check_together(const A& configuration, const Lines& lines) {
  const auto& node = configuration.node;
  if (node.memory_available == MemoryAvailable::MemAvailable && node.cgroup_root != "/")
    return std::unexpected(
        lines.at("node.memoryAvailable")
            .error(fmt::format("memAvailable is an estimate for the whole machine, not for the cgroup \"{}\": use "
                               "workingSet, or leave node.cgroupRoot at \"/\"",
                               node.cgroup_root)));
  return check_psi(configuration.notifier, lines);
}

Result<A> read_document(const Value& document) {
  A configuration;
  Lines lines;
  const auto entries = document.entries();
  if (!entries) return std::unexpected(entries.error());
  const auto sections = section_names();
  for (const auto& [name, value] : *entries) {
    if (name == "apiVersion" || name == "kind") continue;
    if (std::ranges::find(sections, name) == sections.end()) return std::unexpected(unknown_key(value, name, sections));
    if (value.is_null()) continue;
    if (const auto result = read_section(name, value, configuration, lines); !result)
      return std::unexpected(result.error());
  }
  if (const auto checked = check_together(configuration, lines); !checked) return std::unexpected(checked.error());
  return configuration;
}

}  // namespace

std::vector<KeyDescription> describe(const AgentConfiguration& configuration) {
  const AgentConfiguration defaults;
  std::vector<KeyDescription> descriptions;
  for (const auto& key : agent_keys())
    descriptions.push_back({.path = key.path,
                            .type = key.type,
                            .default_value = key.print(defaults),
                            .value = key.print(configuration),
                            .meaning = key.meaning});
  return descriptions;
}

Result<AgentConfiguration> parse_agent_configuration(std::string_view text, std::string_view origin) {
  const auto document = parse_yaml(text, origin);
  if (!document) return std::unexpected(document.error());
  if (document->is_null()) return AgentConfiguration{};
  if (const auto header = check_header(*document, "evictd.io/v1alpha1", "AgentConfiguration"); !header)
    return std::unexpected(header.error());
  return read_document(*document);
}

Result<AgentConfiguration> load_agent_configuration(const std::filesystem::path& path) {
  const auto text = read_text_file(path);
  if (!text) return std::unexpected(text.error());
  return parse_agent_configuration(*text, path.string());
}

}  // namespace evictd::config
