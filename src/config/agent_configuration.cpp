#include "config/agent_configuration.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "config/agent_keys.hpp"
#include "config/nearest.hpp"
#include "config/removed_keys.hpp"
#include "config/yaml.hpp"

namespace evictd::config {
namespace {

using A = AgentConfiguration;

/// What may stand in a mapping of this path ("" is the document): keys and further mappings, in their order.
std::vector<std::string_view> names_in(std::string_view section) {
  std::vector<std::string_view> names;
  for (const auto& key : agent_keys()) {
    std::string_view rest = key.path;
    if (!section.empty()) {
      if (!rest.starts_with(section) || rest[section.size()] != '.') continue;
      rest.remove_prefix(section.size() + 1);
    }
    const auto name = rest.substr(0, rest.find('.'));
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  return names;
}

bool is_section(std::string_view path) {
  return std::ranges::any_of(agent_keys(), [&](const AgentKey& key) {
    return key.path.starts_with(path) && key.path.size() > path.size() && key.path[path.size()] == '.';
  });
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
  if (siblings.empty()) return value.error("unknown key");  // in a mapping all of whose keys were removed
  return value.error(fmt::format("unknown key; those known here are {}", fmt::join(siblings, ", ")));
}

using Lines = std::map<std::string, Value, std::less<>>;

Result<void> read_section(const std::string& section, const Value& mapping, A& target, Lines& lines) {
  const auto entries = mapping.entries();
  if (!entries) return std::unexpected(entries.error());
  for (const auto& [name, value] : *entries) {
    if (section.empty() && (name == "apiVersion" || name == "kind")) continue;
    const auto path = section.empty() ? name : fmt::format("{}.{}", section, name);
    const auto known = std::ranges::find(agent_keys(), path, &AgentKey::path);
    const bool is_name = name.find('.') == std::string::npos;
    const bool is_key = is_name && known != agent_keys().end();
    if (const auto* removed = find_removed_key(path); is_name && removed != nullptr)
      return std::unexpected(value.error(fmt::format("no longer a key: {}", removed->instead)));
    if (!is_key && !(is_name && (is_section(path) || had_keys(path))))
      return std::unexpected(unknown_key(value, name, names_in(section)));
    if (value.is_null()) continue;
    auto result = is_key ? known->read(value, target) : read_section(path, value, target, lines);
    if (!result) return result;
    if (is_key) lines.emplace(known->path, value);
  }
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
  return {};
}

Result<A> read_document(const Value& document) {
  A configuration;
  Lines lines;
  if (const auto result = read_section("", document, configuration, lines); !result)
    return std::unexpected(result.error());
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

bool NotifierSettings::has(NotifierSource source) const { return std::ranges::find(disable, source) == disable.end(); }

StateFiles state_files(const AgentConfiguration& configuration) {
  const std::filesystem::path directory = configuration.state_directory;
  if (directory.empty()) return {};
  return {.thresholds = directory / "thresholds.yaml",
          .allocations = directory / "allocations.json",
          .events = directory / "events"};
}

RuntimeFiles runtime_files(const AgentConfiguration& configuration) {
  const std::filesystem::path directory = configuration.runtime_directory;
  return {.lock = directory / "lock",
          .state = directory / "state",
          .shutdown = directory / "shutdown.json",
          .kubelet_runtime = directory / "kubelet-runtime",
          .fence = directory / "fence",
          .oom_scores = directory / "oom-scores",
          .held = directory / "held",
          .socket = directory / longest_socket_name,
          .admin_socket = directory / "admin.sock",
          .cri_socket = directory / "cri.sock",
          .pressure_socket = directory / "pressure" / "pressure.sock"};
}

}  // namespace evictd::config
