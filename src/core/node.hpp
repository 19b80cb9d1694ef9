#pragma once
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/pod.hpp"

namespace evictd::core {

/// What keeps pods off the node unless they tolerate it.
struct Taint {
  std::string key;
  std::string value{};
  std::string effect{};  ///< "NoSchedule", "PreferNoSchedule" or "NoExecute"

  friend bool operator==(const Taint&, const Taint&) = default;
};

/// The node as its API object describes it.
struct Node {
  std::string name;
  std::map<std::string, std::string, std::less<>> labels{};
  std::vector<Taint> taints{};
  ResourceList allocatable{};               ///< cpu, memory, ephemeral-storage, pods and extended resources
  bool supplemental_groups_policy = false;  ///< whether the runtime can be strict about supplemental groups
  std::set<std::string, std::less<>> declared_features{};  ///< status.declaredFeatures

  friend bool operator==(const Node&, const Node&) = default;
};

}  // namespace evictd::core
