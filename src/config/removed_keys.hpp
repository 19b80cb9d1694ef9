#pragma once
#include <span>
#include <string_view>

namespace evictd::config {

/// A key that an AgentConfiguration had once.
struct RemovedKey {
  std::string_view path;     ///< "notifier.memcg"
  std::string_view instead;  ///< what there is in its place, for an operator: "use notifier.disable: [memcg]"
};

/// All of them, section by section. None is a key of agent_keys().
[[nodiscard]] std::span<const RemovedKey> removed_keys();

/// Null: there was no such key.
[[nodiscard]] const RemovedKey* find_removed_key(std::string_view path);

/// Whether keys of this mapping ("protection") were removed.
[[nodiscard]] bool had_keys(std::string_view section);

}  // namespace evictd::config
