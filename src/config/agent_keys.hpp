#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "config/agent_configuration.hpp"
#include "config/yaml.hpp"
#include "core/error.hpp"

namespace evictd::config {

/// One key of an AgentConfiguration: all there is to know of it.
struct AgentKey {
  std::string path;     ///< "section.name", "section.group.name"; a directory's is its name alone
  std::string type;     ///< what it may hold, for people
  std::string meaning;  ///< a sentence for an operator
  std::function<Result<void>(const Value&, AgentConfiguration&)> read;
  std::function<std::string(const AgentConfiguration&)> print;

  /// The path of the mapping that it stands in: "section", "section.group"; "": the document.
  [[nodiscard]] std::string_view section() const {
    const auto dot = path.rfind('.');
    return dot == std::string::npos ? std::string_view{} : std::string_view(path).substr(0, dot);
  }
  [[nodiscard]] std::string_view name() const { return std::string_view(path).substr(path.rfind('.') + 1); }
};

/// All keys, section by section. A new key is one entry here and its member with the default in
/// agent_configuration.hpp.
[[nodiscard]] const std::vector<AgentKey>& agent_keys();

}  // namespace evictd::config
