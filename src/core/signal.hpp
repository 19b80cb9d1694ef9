#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/duration.hpp"
#include "core/node_condition.hpp"

namespace evictd::core {

/// The kubelet's eviction signals, in the order in which evictd lets several met thresholds act (kubelet-spec section
/// 4). The value is the place of the signal's row; define_signal() gives further ones.
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

/// So many signals there can be.
inline constexpr std::size_t signal_capacity = 16;

/// By which of their numbers pods are ranked.
enum class RankBy : std::uint8_t { Memory, EphemeralStorage, Inodes, Processes };

/// How fast a signal is assumed to run out, in its unit. What is seen to go faster raises the rate
/// (wake::PollInterval).
struct Pace {
  double rate = 0;        ///< units a second: it is taken no faster than this; 0: as memory was measured to be taken
  double fastest = 0;     ///< units a second: what is seen beyond `rate` is believed up to here
  Duration shortest{};    ///< between two looks, however near a threshold is
  std::int64_t step = 1;  ///< a shortage that grew by less is not worth a pass
};

/// All that the rest of the program knows of a signal, besides its reader (node/signal_reader.hpp). Texts are static.
struct SignalRow {
  std::string_view name;      ///< "memory.available"
  std::string_view resource;  ///< "memory": as messages and annotations name what it measures
  std::string_view unit;      ///< "bytes", or what is counted: "inodes", "pids"
  NodeCondition condition;
  RankBy rank_by;
  Pace pace;
};

inline constexpr std::string_view bytes_unit = "bytes";

/// Adds a signal behind those there are. For the start of the program, before a configuration is read and while there
/// is one thread. Throws std::length_error where `signal_capacity` is used up.
Signal define_signal(const SignalRow& row);

/// In their order.
[[nodiscard]] std::span<const Signal> all_signals();
/// The names of all signals, in their order.
[[nodiscard]] std::vector<std::string_view> signal_names();
[[nodiscard]] std::optional<Signal> parse_signal(std::string_view name);

[[nodiscard]] const SignalRow& row_of(Signal signal);
[[nodiscard]] inline std::string_view name(Signal signal) { return row_of(signal).name; }
[[nodiscard]] inline std::string_view resource_of(Signal signal) { return row_of(signal).resource; }
[[nodiscard]] inline std::string_view unit_of(Signal signal) { return row_of(signal).unit; }
[[nodiscard]] inline NodeCondition condition_of(Signal signal) { return row_of(signal).condition; }
[[nodiscard]] inline RankBy rank_by(Signal signal) { return row_of(signal).rank_by; }

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
[[nodiscard]] inline bool is_disk(Signal signal) { return condition_of(signal) == NodeCondition::DiskPressure; }
/// Its amounts are plain numbers, of inodes or process ids; everything else is bytes.
[[nodiscard]] inline bool is_counted(Signal signal) { return unit_of(signal) != bytes_unit; }

}  // namespace evictd::core
