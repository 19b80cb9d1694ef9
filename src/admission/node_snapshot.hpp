#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "admission/plugin_devices.hpp"
#include "admission/pod_allocation.hpp"
#include "admission/taint.hpp"
#include "core/pod.hpp"
#include "core/pressure.hpp"

namespace evictd::admission {

/// The node as its API object describes it.
struct Node {
  std::string name;
  std::map<std::string, std::string, std::less<>> labels{};
  std::vector<Taint> taints{};
  core::ResourceList allocatable{};         ///< cpu, memory, ephemeral-storage, pods and extended resources
  bool supplemental_groups_policy = false;  ///< whether the runtime can be strict about supplemental groups
  std::set<std::string, std::less<>> declared_features{};  ///< status.declaredFeatures

  friend bool operator==(const Node&, const Node&) = default;
};

/// What the host's AppArmor is like.
struct AppArmorSupport {
  bool enabled = false;  ///< in the kernel
  std::string error{};   ///< where it is enabled and yet cannot be used: why

  friend bool operator==(const AppArmorSupport&, const AppArmorSupport&) = default;
};

/// What the handlers know of the node at the moment of the question.
struct NodeSnapshot {
  core::NodeConditions conditions{};
  std::optional<Node> node{};    ///< absent: the node's object is not known
  std::string kernel_version{};  ///< "6.1.0-18-amd64"; "": unknown
  AppArmorSupport app_armor{};
  Allocations allocations{};                                ///< what pods already have
  PluginDevices plugins{};                                  ///< what device plugins have for them
  std::set<std::string, std::less<>> configured_devices{};  ///< resources whose devices are the configuration's
  bool shutting_down = false;
};

}  // namespace evictd::admission
