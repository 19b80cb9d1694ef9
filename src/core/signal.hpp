#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace evictd::core {

/// The kubelet's eviction signals, in the order in which evictd lets several met thresholds act (kubelet-spec section
/// 4).
enum class Signal : std::uint8_t {
  MemoryAvailable,
  AllocatableMemoryAvailable,
  NodefsAvailable,
  NodefsInodesFree,
  ImagefsAvailable,
  ImagefsInodesFree,
  ContainerfsAvailable,
  ContainerfsInodesFree,
  PidAvailable,
};

inline constexpr std::array all_signals{
    Signal::MemoryAvailable,      Signal::AllocatableMemoryAvailable, Signal::NodefsAvailable,
    Signal::NodefsInodesFree,     Signal::ImagefsAvailable,           Signal::ImagefsInodesFree,
    Signal::ContainerfsAvailable, Signal::ContainerfsInodesFree,      Signal::PidAvailable,
};

/// What a signal measures, as messages and annotations name it.
enum class Resource : std::uint8_t { Memory, EphemeralStorage, Inodes, Pids };

/// The node condition a met threshold raises.
enum class NodeCondition : std::uint8_t { DiskPressure, MemoryPressure, PidPressure };

/// In the order in which a kubelet writes them.
inline constexpr std::array all_node_conditions{NodeCondition::MemoryPressure, NodeCondition::DiskPressure,
                                                NodeCondition::PidPressure};

/// "memory.available", …
[[nodiscard]] std::string_view name(Signal signal);
/// "memory", "ephemeral-storage", "inodes", "pids"
[[nodiscard]] std::string_view name(Resource resource);
/// "MemoryPressure", "DiskPressure", "PIDPressure"
[[nodiscard]] std::string_view name(NodeCondition condition);

/// The names of all signals, in their order.
[[nodiscard]] std::vector<std::string_view> signal_names();
[[nodiscard]] std::optional<Signal> parse_signal(std::string_view name);
[[nodiscard]] Resource resource_of(Signal signal);
[[nodiscard]] NodeCondition condition_of(Signal signal);

[[nodiscard]] constexpr std::size_t index(Signal signal) { return static_cast<std::size_t>(signal); }
[[nodiscard]] constexpr bool is_memory(Signal signal) {
  return signal == Signal::MemoryAvailable || signal == Signal::AllocatableMemoryAvailable;
}
[[nodiscard]] constexpr bool is_nodefs(Signal signal) {
  return signal == Signal::NodefsAvailable || signal == Signal::NodefsInodesFree;
}
[[nodiscard]] constexpr bool is_imagefs(Signal signal) {
  return signal == Signal::ImagefsAvailable || signal == Signal::ImagefsInodesFree;
}
/// Of any file system.
[[nodiscard]] bool is_disk(Signal signal);
/// Inodes and process ids; everything else is bytes.
[[nodiscard]] bool is_counted(Signal signal);

}  // namespace evictd::core
