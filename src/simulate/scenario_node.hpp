#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "admission/allocation/machine_topology.hpp"
#include "admission/device.hpp"
#include "admission/node_snapshot.hpp"
#include "config/yaml.hpp"
#include "core/error.hpp"
#include "core/filesystem_layout.hpp"
#include "core/node.hpp"
#include "core/pod.hpp"

namespace evictd::simulate {

/// What a scenario says of its node from the start. What it says nothing of keeps no pod away: resources are unlimited
/// (but for `maxPods`), wishes for a name or labels are taken for fulfilled, the kernel is new, AppArmor is there. Only
/// features have to be declared.
struct ScenarioNode {
  using Labels = std::map<std::string, std::string, std::less<>>;

  core::FilesystemLayout layout{};
  std::string name{};                           ///< "": unsaid
  std::optional<Labels> labels{};               ///< absent: unsaid
  std::vector<core::Taint> taints{};            ///< unsaid: none
  core::ResourceList allocatable{};             ///< what is unsaid is not in it
  std::optional<std::string> kernel_version{};  ///< absent: unsaid; "": unknown to the node itself
  bool supplemental_groups_policy = true;
  bool app_armor = true;
  bool shutting_down = false;
  std::vector<std::string> declared_features{};  ///< unsaid: none, as a kubelet of 1.36 without alpha gates
  std::optional<admission::MachineTopology> topology{};
  std::vector<admission::Device> devices{};
};

/// Reads a scenario's `node`. The error names file, line and key.
[[nodiscard]] Result<ScenarioNode> read_scenario_node(const config::Value& value);

/// The pod without wishes that the scenario's node says nothing of.
[[nodiscard]] core::Pod judgeable(core::Pod pod, const ScenarioNode& node);

/// The node as the handlers are to see it when asked for this pod. Conditions and allocations are left empty.
[[nodiscard]] admission::NodeSnapshot snapshot_for(const core::Pod& pod, const ScenarioNode& node,
                                                   std::int64_t max_pods);

}  // namespace evictd::simulate
