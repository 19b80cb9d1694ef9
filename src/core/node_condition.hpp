#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace evictd::core {

/// The node condition a met threshold raises.
enum class NodeCondition : std::uint8_t { DiskPressure, MemoryPressure, PidPressure };

/// A condition as the kubelet tells of it. (kubelet: nodestatus.MemoryPressureCondition and its siblings; taints:
/// k8s.io/api/core/v1, well_known_taints.go)
struct NodeConditionRow {
  NodeCondition condition;
  std::string_view name;
  std::string_view taint;  ///< its key; the effect is NoSchedule
  std::string_view reason_true;
  std::string_view message_true;
  std::string_view reason_false;
  std::string_view message_false;
};

/// In the order in which a kubelet writes them.
inline constexpr std::array<NodeConditionRow, 3> node_condition_rows{{
    {NodeCondition::MemoryPressure, "MemoryPressure", "node.kubernetes.io/memory-pressure",
     "KubeletHasInsufficientMemory", "kubelet has insufficient memory available", "KubeletHasSufficientMemory",
     "kubelet has sufficient memory available"},
    {NodeCondition::DiskPressure, "DiskPressure", "node.kubernetes.io/disk-pressure", "KubeletHasDiskPressure",
     "kubelet has disk pressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"},
    {NodeCondition::PidPressure, "PIDPressure", "node.kubernetes.io/pid-pressure", "KubeletHasInsufficientPID",
     "kubelet has insufficient PID available", "KubeletHasSufficientPID", "kubelet has sufficient PID available"},
}};

[[nodiscard]] constexpr const NodeConditionRow& row_of(NodeCondition condition) {
  std::size_t place = 0;
  while (node_condition_rows[place].condition != condition) ++place;
  return node_condition_rows[place];
}

/// "MemoryPressure", "DiskPressure", "PIDPressure"
[[nodiscard]] constexpr std::string_view name(NodeCondition condition) { return row_of(condition).name; }

}  // namespace evictd::core
