#pragma once
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "admission/plugin_devices.hpp"
#include "admission/pod_allocation.hpp"
#include "core/node.hpp"
#include "core/pressure.hpp"

namespace evictd::admission {

/// What the host's AppArmor is like.
struct AppArmorSupport {
  bool enabled = false;  ///< in the kernel
  std::string error{};   ///< where it is enabled and yet cannot be used: why

  friend bool operator==(const AppArmorSupport&, const AppArmorSupport&) = default;
};

/// What the handlers know of the node at the moment of the question.
struct NodeSnapshot {
  core::NodeConditions conditions{};
  std::optional<core::Node> node{};  ///< absent: the node's object is not known
  std::string kernel_version{};      ///< "6.1.0-18-amd64"; "": unknown
  AppArmorSupport app_armor{};
  Allocations allocations{};                                ///< what pods already have
  PluginDevices plugins{};                                  ///< what device plugins have for them
  std::set<std::string, std::less<>> configured_devices{};  ///< resources whose devices are the configuration's
  bool shutting_down = false;
};

}  // namespace evictd::admission
