#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <expected>
#include <set>
#include <string>
#include <string_view>

#include "config/yaml.hpp"
#include "core/error.hpp"
#include "core/pod.hpp"

namespace evictd::simulate {

/// The pods that were on the node at any time so far, by the names steps call them.
class KnownPods {
 public:
  void add(const core::PodList& pods) {
    for (const auto& pod : pods) {
      std::erase_if(pods_, [&](const core::PodPtr& other) { return other->key() == pod->key(); });
      pods_.push_back(pod);
      on_node_.insert(pod->key());
    }
  }
  void remove(const std::string& key) { on_node_.erase(key); }
  /// An evicted one is on the node until a step removes it.
  [[nodiscard]] bool is_on_node(const std::string& key) const { return on_node_.contains(key); }

  /// `name`: "name" where only one namespace has it, or "namespace/name".
  [[nodiscard]] Result<core::PodPtr> find(const config::Value& value, std::string_view name) const {
    core::PodPtr found;
    for (const auto& pod : pods_) {
      if (pod->name != name && pod->key() != name) continue;
      if (found)
        return std::unexpected(value.error(
            fmt::format("\"{}\" may be {} or {}: write the namespace too", name, found->key(), pod->key())));
      found = pod;
    }
    if (!found) return std::unexpected(value.error(fmt::format("there is no pod \"{}\" so far", name)));
    return found;
  }

 private:
  core::PodList pods_;
  std::set<std::string> on_node_;
};

}  // namespace evictd::simulate
